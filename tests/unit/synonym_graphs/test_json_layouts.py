"""Graphs in plain JSON layouts, and in the layout that Mementos released."""

from __future__ import annotations

import json
from pathlib import Path

import networkx as nx
import pytest
from support.messages import expected_message

from hallujudge.synonym_graphs import (
    GraphFormatError,
    GraphInvalidError,
    SynonymGraph,
    compile_keywords,
    compile_matcher,
    load_graph,
    parse_graph,
    shipped_graphs,
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
    found = compile_matcher(graph, variant="corrected").find("Two puppies and a cat.")
    assert [(mention.word, mention.object) for mention in found] == [
        ("puppy", "dog"),
        ("cat", "cat"),
    ]


def test_saving_from_networkx_and_reading_back() -> None:
    graph = parse_graph(layouts()["root to forms"], name="mine")
    saved = json.dumps(nx.node_link_data(graph.to_networkx(), edges="links"))
    again = parse_graph(saved, name="mine")
    assert forms(again) == forms(graph)


@pytest.mark.parametrize("name", ["daily_life_objects", "robotics_behaviors", "coco"])
def test_a_shipped_graph_comes_back_from_networkx(name: str) -> None:
    graph = load_graph(name)
    again = parse_graph(json.dumps(nx.node_link_data(graph.to_networkx(), edges="links")), name="x")
    assert validate_graph(again) == ()
    assert forms(again) == forms(graph)
    assert {form: set(roots) for form, roots in again.edges} == {
        form: set(roots) for form, roots in graph.edges
    }
    blocked = {form for form, target in graph.compounds if target is None}
    assert {form for form, _ in again.compounds} == blocked


@pytest.mark.parametrize("layout", [*layouts(), "table"])
def test_a_renamed_file_has_the_same_graph(tmp_path: Path, layout: str) -> None:
    text = layouts().get(layout, "dog, puppy, hound\ncat, kitten\n")
    suffix = "txt" if layout == "table" else "json"
    paths = [tmp_path / f"{name}.{suffix}" for name in ("mine", "coco")]
    for path in paths:
        path.write_text(text)
    first, second = map(load_graph, paths)
    assert first == second
    assert first.label == second.label
    # Not the name of a graph that is shipped.
    assert first.label.startswith("custom-")
    assert parse_graph(text, name="other").label == first.label


@pytest.mark.parametrize("key", ["links", "edges"])
def test_a_wrong_link_is_named_under_its_own_key(key: str) -> None:
    data = {"directed": True, "nodes": [{"id": "dog"}], key: [{"source": "puppy"}]}
    with pytest.raises(GraphFormatError) as caught:
        parse_graph(json.dumps(data), name="a.json")
    assert str(caught.value) == f"a.json, $.{key}[0]: has no target; give source and target"


def test_a_node_without_links_is_a_root() -> None:
    graph: nx.DiGraph[str] = nx.DiGraph([("couch", "sofa")])
    graph.add_node("lamp")
    read = parse_graph(json.dumps(nx.node_link_data(graph, edges="links")), name="mine")
    assert set(read.roots) == {"sofa", "lamp"}
    assert read.root_of("lamps") == "lamp"


def test_a_long_cycle_is_named_in_part() -> None:
    links = {f"w{number}": f"w{(number + 1) % 3_000}" for number in range(3_000)}
    with pytest.raises(GraphInvalidError, match="a cycle of 3,000 words: w0 -> w1") as caught:
        parse_graph(json.dumps(links), name="c")
    assert len(str(caught.value)) < 300
    head = {"format": "hallujudge-synonyms/1", "name": "c", "version": "1"}
    own = head | {"categories": [{"root": "a", "forms": ["b"]}], "reads_as": links}
    problems = validate_graph(parse_graph(json.dumps(own), name="c"))
    [cycle] = [problem for problem in problems if problem.startswith("a cycle")]
    assert len(cycle) < 300


def test_each_cycle_is_named_along_its_links() -> None:
    links = {"b": "c", "c": "a", "a": "b", "pup": "dog", "dog": "pup", "kit": "cat", "d": "c"}
    with pytest.raises(GraphInvalidError) as caught:
        parse_graph(json.dumps(links), name="c")
    assert caught.value.problems == ("a cycle: a -> b -> c -> a", "a cycle: dog -> pup -> dog")


def test_a_word_that_reads_as_itself_is_no_cycle() -> None:
    own = {"categories": [{"root": "hot dog", "forms": []}], "reads_as": {"hot dog": "hot dog"}}
    head = {"format": "hallujudge-synonyms/1", "name": "c", "version": "1"}
    assert validate_graph(parse_graph(json.dumps(head | own), name="c")) == ()


def test_a_graph_full_of_cycles_is_refused_at_once() -> None:
    """A few are searched for: one search of the whole graph for each cycle could take minutes."""
    links = {f"{kind}{n}": f"{other}{n}" for n in range(2_000) for kind, other in ("ab", "ba")}
    with pytest.raises(GraphInvalidError, match="a cycle: a0 -> b0 -> a0") as caught:
        parse_graph(json.dumps(links), name="c")
    assert len(caught.value.problems) == 20


def test_a_chain_of_forms_is_followed_link_by_link() -> None:
    """Each link once: a walk from each form would be 50,000 times as long."""
    links = {f"w{number}": f"w{number + 1}" for number in range(50_000)}
    graph = parse_graph(json.dumps(links), name="c")
    assert graph.roots == ("w50000",)
    assert graph.roots_of("w5") == ("w50000",)


def test_a_root_inside_a_chain_is_found_first_and_followed_from_itself_only() -> None:
    nodes = [{"id": "b", "root": True}, {"id": "d", "root": True}]
    links = [("a", "c"), ("a", "b"), ("b", "d"), ("c", "b"), ("c", "d")]
    text = json.dumps(
        {"nodes": nodes, "links": [{"source": one, "target": other} for one, other in links]}
    )
    graph = parse_graph(text, name="c")
    assert {word: graph.roots_of(word) for word in "abcd"} == {
        "a": ("b", "d"), "b": ("b", "d"), "c": ("b", "d"), "d": ("d",)
    }  # fmt: skip


def test_an_undirected_graph_is_refused() -> None:
    undirected: nx.Graph[str] = nx.Graph([("couch", "sofa")])
    text = json.dumps(nx.node_link_data(undirected, edges="links"))
    with pytest.raises(
        GraphFormatError,
        match=expected_message("synonym_graphs.json_layouts:directed-does-not-determine-the-roots"),
    ):
        parse_graph(text, name="mine")


@pytest.mark.parametrize(
    "text",
    [
        '{"toddler": "baby", "toddler": "child"}',
        '{"baby": ["toddler"], "baby": ["infant"]}',
        '{"couch": {"": ["sofa"], "": ["seat"]}}',
    ],
)
def test_a_duplicate_key_is_refused(text: str) -> None:
    with pytest.raises(
        GraphFormatError,
        match=expected_message("synonym_graphs.graph_parser:appears-twice-in-one-object"),
    ):
        parse_graph(text, name="mine")


def test_other_spellings_of_the_same_letters_are_one_word() -> None:
    graph = parse_graph('{"cafe\\u0301": "restaurant"}', name="mine")
    for word in ("caf\u00e9", "cafe\u0301", "CAF\u00c9", "\uff43\uff41\uff46\u00e9"):
        assert graph.root_of(word) == "restaurant"


def forms(graph: SynonymGraph) -> dict[str, tuple[str, ...]]:
    return {
        root: tuple(sorted(form for form, roots in graph.edges if root in roots))
        for root in graph.roots
    }


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
    ("text", "said"),
    [
        ('{"a": ""}', "'' is not a word"),
        ('{"a": ["b", 3]}', "3 is not a word"),
        ('{"nodes": [], "links": [1]}', "expected an object"),
        ('{"nodes": [], "links": [{}]}', "has no source; give source and target"),
    ],
)
def test_entries_that_are_not_words(text: str, said: str) -> None:
    with pytest.raises(GraphFormatError, match=said):
        parse_graph(text, name="mine")


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
