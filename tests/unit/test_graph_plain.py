"""Graphs that people write by hand or save from networkx."""

from __future__ import annotations

import json

import networkx as nx
import pytest

from hallujudge.synonym_graphs import (
    GraphFormatError,
    GraphInvalidError,
    SynonymGraph,
    compile_matcher,
    parse_graph,
    validate_graph,
)

EDGES = [("puppy", "dog"), ("hound", "dog"), ("whelp", "puppy"), ("kitten", "cat")]


def layouts() -> dict[str, str]:
    graph: nx.DiGraph[str] = nx.DiGraph(EDGES)
    return {
        "form to root": json.dumps(dict(EDGES)),
        "root to forms": json.dumps({"dog": ["puppy", "hound", "whelp"], "cat": ["kitten"]}),
        "node-link": json.dumps(nx.node_link_data(graph, edges="links")),
        "node-link with edges": json.dumps(nx.node_link_data(graph, edges="edges")),
    }


@pytest.mark.parametrize("layout", layouts())
def test_plain_layouts(layout: str) -> None:
    graph = parse_graph(layouts()[layout], name="mine")
    assert validate_graph(graph) == ()
    assert {word: graph.root_of(word) for word in ("whelp", "Puppy", "cat", "kittens", "cow")} == {
        "whelp": "dog",
        "Puppy": "dog",
        "cat": "cat",
        "kittens": "cat",
        "cow": None,
    }
    found = compile_matcher(graph, reading="corrected").find("Two puppies and a cat.")
    assert [(mention.word, mention.object) for mention in found] == [
        ("puppy", "dog"),
        ("cat", "cat"),
    ]


def test_saving_from_networkx_and_reading_back() -> None:
    graph = parse_graph(layouts()["root to forms"], name="mine")
    saved = json.dumps(nx.node_link_data(graph.to_networkx(), edges="links"))
    again = parse_graph(saved, name="mine")
    assert forms(again) == forms(graph)


def forms(graph: SynonymGraph) -> dict[str, tuple[str, ...]]:
    return {root: graph.forms_of(root) for root in graph.roots}


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "b", "b": "c", "c": "a"}',
        '{"a": ["b"], "b": ["a"]}',
        '{"x": "a", "a": "b", "b": "a"}',
    ],
)
def test_circles_are_named(text: str) -> None:
    with pytest.raises(GraphInvalidError, match="a cycle: a -> b"):
        parse_graph(text, name="mine")


@pytest.mark.parametrize(
    "text",
    ['{"a": ""}', '{"a": ["b", 3]}', '{"nodes": [], "links": [1]}', '{"nodes": [], "links": [{}]}'],
)
def test_entries_that_are_no_words(text: str) -> None:
    with pytest.raises(GraphFormatError):
        parse_graph(text, name="mine")
