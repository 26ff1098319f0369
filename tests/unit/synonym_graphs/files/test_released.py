"""Graphs in the released layout, and the graphs that ship."""

from __future__ import annotations

import json

import pytest

from hallujudge.synonym_graphs import (
    GraphFormatError,
    GraphInvalidError,
    compile_keywords,
    load_graph,
    parse_graph,
    shipped_graphs,
)

WORDS = {"couch": {"": ["sofa"]}, "pick": {"": ["take"], "up": ["lift", "take"]}}
OURS = ("daily_life", "robotics", "comics", "general")


def test_released_layout_round_trips_and_keeps_its_spelling() -> None:
    graph = parse_graph(
        json.dumps({" pick up": {"": ["Pick up "]}, "arrange,": {"": []}}), name="g"
    )
    assert parse_graph(graph.to_json(), name="other") == graph
    matcher = compile_keywords(graph, variant="published")
    assert matcher.counts(["Pick up "], [" pick up"]).hits == 1
    assert matcher.counts(["pick up"], [" pick up"]).hits == 0


def test_words_of_a_released_graph_may_point_at_each_other() -> None:
    graph = parse_graph('{"a": {"": ["b"]}, "b": {"": ["a"]}}', name="g")
    assert compile_keywords(graph, variant="published").counts(["b", "a"], ["a", "b"]).hits == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a": {"": ["b"]}, "c": {"": "d"}}', r"\['c'\]: expected a list of roots"),
        ('{"a": "b", "c": ["d"]}', r"\['c'\]: is a list .* unlike other entries"),
        ("[]", "is a list"),
        ('{"a": {"": [1]}}', "not a word"),
        ('{"a": {"": ["b\\u0000"]}}', "not a word"),
        (
            '{"format": "hallujudge-synonyms/1", "name": "g", "version": "1", "pairs": [["a"]]}',
            "pairs",
        ),
        ('{"a": "b", "b": "a"}', "circle|cycle"),
    ],
)  # fmt: skip
def test_broken_graphs_are_refused(text: str, says: str) -> None:
    with pytest.raises((GraphFormatError, GraphInvalidError), match=says):
        parse_graph(text, name="g")


def test_shipped_graphs_are_there_and_know_everyday_words() -> None:
    names = {f"{domain}_{kind}" for domain in OURS for kind in ("objects", "behaviors")}
    assert names <= set(shipped_graphs())
    for name in names:
        assert len(load_graph(name).edges) > 250
    assert "sofa" in load_graph("daily_life_objects").roots_of("Couches")
    assert load_graph("robotics_objects").root_of("mechanical arm") == "robotic arm"
