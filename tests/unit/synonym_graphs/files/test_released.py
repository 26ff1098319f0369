"""Released graphs, pickles that must not be unpickled, and the tools that grow graphs."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hallujudge.synonym_graphs import (
    GraphFormatError,
    GraphInvalidError,
    clean_word,
    compile_keywords,
    load_graph,
    parse_graph,
    read_released_pickle,
    shipped_graphs,
)
from hallujudge.synonym_graphs.tools import (
    GraphPatch,
    PatchEntry,
    apply_patch,
    difference,
    draw_domain,
    draw_neighbourhood,
    merge_graphs,
    parse_patch,
    statistics_of,
)

WORDS = {"couch": {"": ["sofa"]}, "pick": {"": ["take"], "up": ["lift", "take"]}}
OURS = ("daily_life", "robotics", "comics", "general")


class Call:
    """Pickles as a call of a function."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self._call = (function, arguments)

    def __reduce__(self) -> Any:
        return self._call


@pytest.mark.parametrize("protocol", range(6))
def test_a_hostile_pickle_is_refused_by_name_and_runs_nothing(
    tmp_path: Path, protocol: int
) -> None:
    witness = tmp_path / "ran"
    payload = Call(os.system, f"touch {witness}")
    for value in (payload, {"dog": {"": [payload]}}, [payload]):
        path = tmp_path / "graph.pkl"
        path.write_bytes(pickle.dumps(value, protocol=protocol))
        with pytest.raises(GraphFormatError, match=r"system|refused|opcode"):
            load_graph(path)
    assert not witness.exists()


@pytest.mark.parametrize("name", ["posix system", "builtins eval", "__main__ Other", "os popen"])
def test_names_are_refused_by_name(name: str) -> None:
    module, function = name.split()
    data = b"\x80\x02c" + f"{module}\n{function}\n".encode() + b"."
    with pytest.raises(GraphFormatError, match=f"{module}.{function}"):
        read_released_pickle(data, source="x.pkl")


def test_a_plain_dict_is_read_at_every_protocol() -> None:
    for protocol in range(6):
        assert read_released_pickle(pickle.dumps(WORDS, protocol=protocol), source="x") == WORDS


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\x80", b"\x80\x04", b"\x80\x04.", b"\x80\x04N.", b"\x80\x04}}s.", b"\x80\x04e.",
        b"\x80\x04h\x05.", pickle.dumps([1, 2]), pickle.dumps({"a": 1}), pickle.dumps({1: {}}),
        pickle.dumps({"a": {"": [1]}}), pickle.dumps({"a": {"": ["b"]}})[:-3], os.urandom(200),
    ],
)  # fmt: skip
def test_other_pickles_are_refused(data: bytes) -> None:
    with pytest.raises(GraphFormatError):
        read_released_pickle(data, source="x.pkl")


def test_a_pickle_that_blows_up_is_refused() -> None:
    roots = [f"r{i}" for i in range(1000)]
    ways = {str(i): roots for i in range(1000)}
    with pytest.raises(GraphFormatError, match="more than"):
        read_released_pickle(pickle.dumps({str(i): ways for i in range(1000)}), source="x.pkl")


def test_released_layout_round_trips_and_keeps_its_spelling() -> None:
    graph = parse_graph(
        json.dumps({" pick up": {"": ["Pick up "]}, "arrange,": {"": []}}), name="g"
    )
    assert parse_graph(graph.to_json(), name="other") == graph
    matcher = compile_keywords(graph, reading="published")
    assert matcher.counts(["Pick up "], [" pick up"]).hits == 1
    assert matcher.counts(["pick up"], [" pick up"]).hits == 0


def test_words_of_a_released_graph_may_point_at_each_other() -> None:
    graph = parse_graph('{"a": {"": ["b"]}, "b": {"": ["a"]}}', name="g")
    assert compile_keywords(graph, reading="published").counts(["b", "a"], ["a", "b"]).hits == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a": {"": ["b"]}, "c": {"": "d"}}', "c"),
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


def test_the_root_that_the_reference_contains_wins() -> None:
    matcher = compile_keywords(load_graph("daily_life_objects"), reading="corrected")
    for root in ("baby", "child", "person"):
        assert matcher.counts([root], ["toddler"]).hits == 1
    assert matcher.counts(["baby"], ["person"]).hits == 0, "a kind is not its members"


def test_unicode_forms_of_one_word_are_one_word() -> None:
    assert clean_word("cafe\u0301 table") == clean_word("  CAFÉ  table\u200b")
    matcher = compile_keywords(load_graph("general_objects"), reading="corrected")
    assert matcher.counts(["café"], ["CAFE\u0301"]).hits == 1
    assert matcher.counts(["naïve art"], ["nai\u0308ve art"]).hits == 1
    near = compile_keywords(load_graph("general_objects"), reading="published").match(
        ["naïve art"], ["nai\u0308ve art"]
    )
    assert [miss.why for miss in near.near] == ["spelling"]


def test_evidence_names_near_misses_and_unknown_words() -> None:
    matcher = compile_keywords(load_graph("daily_life_objects"), reading="corrected")
    found = matcher.match(["man", "red balloon", "sofa"], ["person", "balloon", "couch", "gizmo"])
    assert found.matched == (("couch", "sofa"),)
    assert found.missed == ("man", "red balloon")
    assert found.hallucinated == ("person", "balloon", "gizmo")
    assert ("person", "man", "direction") in found.near
    assert ("balloon", "red balloon", "word") in found.near
    assert found.unknown == ("gizmo", "red balloon")


def test_two_predictions_in_a_row_are_read_together() -> None:
    graph = parse_graph(json.dumps(WORDS), name="g")
    matcher = compile_keywords(graph, reading="published", pairs=True)
    found = matcher.match(["lift", "sofa"], ["pick", "up", "couch"])
    assert found.matched == (("pick + up", "lift"), ("couch", "sofa"))
    assert compile_keywords(graph, reading="published").counts(["lift"], ["pick", "up"]).hits == 0


def test_leftovers_count_once_as_published_and_each_when_corrected() -> None:
    graph = parse_graph(json.dumps(WORDS), name="g")
    lists = (["sofa"], ["couch", "dog", "cat", "owl"])
    assert compile_keywords(graph, reading="published").counts(*lists) == (1, 1, 0)
    assert compile_keywords(graph, reading="corrected").counts(*lists) == (1, 3, 0)


def test_a_keyword_that_is_spelt_by_one_and_taken_by_another_is_named_once() -> None:
    graph = parse_graph('{"people": {"": ["customers"]}, "customers": {"": ["x"]}}', name="g")
    lists = (["customers", "rock", "owl"], ["customers", "people", "dog"])
    published = compile_keywords(graph, reading="published")
    assert published.counts(*lists) == published.match(*lists).counts == (1, 1, 2)
    corrected = compile_keywords(graph, reading="corrected")
    assert corrected.counts(*lists) == corrected.match(*lists).counts


SEEN = """
from hallujudge.synonym_graphs import compile_keywords, load_graph
matcher = compile_keywords(load_graph("daily_life_objects"), reading="published")
words = ["red dining table", "dining room", "wooden table", "room", "pool table", "hotel room"]
print(matcher.match(words, ["dining table room"]).near)
"""


def test_near_misses_stand_in_one_order_in_every_process() -> None:
    printed = {
        subprocess.run(
            [sys.executable, "-c", SEEN],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(printed) == 1
    assert "NearMiss" in printed.pop()


def test_patches() -> None:
    graph = load_graph("general_objects")
    entries = (
        PatchEntry(form="chesterfield", decision="accept", root="sofa"),
        PatchEntry(form="gizmo", decision="accept", root="gizmo"),
        PatchEntry(form="idea", decision="reject"),
        PatchEntry(form="settle"),
    )
    patch = GraphPatch(graph=graph.label, entries=entries)
    grown = apply_patch(graph, parse_patch(patch.to_text(), name="p"))
    assert grown.version == "2"
    assert grown.digest != graph.digest
    assert grown.root_of("chesterfield") == "sofa"
    assert grown.root_of("gizmo") == "gizmo"
    assert grown.root_of("idea") is None
    assert difference(graph, grown).added == (("chesterfield", "sofa"), ("gizmo", "gizmo"))
    assert parse_graph(grown.to_json(), name="x") == grown
    by_form = PatchEntry(form="loveseat", decision="accept", root="couch")
    grown = apply_patch(graph, GraphPatch(graph="", entries=(by_form,)))
    assert grown.roots_of("loveseat") == grown.roots_of("couch") == graph.roots_of("couch")
    circle = GraphPatch(
        graph="", entries=(PatchEntry(form="person", decision="accept", root="man"),)
    )
    with pytest.raises(GraphInvalidError, match="cycle"):
        apply_patch(graph, circle)


def test_patching_and_merging_released_graphs() -> None:
    graph = parse_graph(json.dumps(WORDS), name="g")
    patch = GraphPatch(
        graph="", entries=(PatchEntry(form="settee", decision="accept", root="sofa"),)
    )
    grown = apply_patch(graph, patch)
    assert compile_keywords(grown, reading="published").counts(["sofa"], ["settee"]).hits == 1
    assert merge_graphs(graph, grown).digest != graph.digest
    with pytest.raises(GraphInvalidError, match="released"):
        merge_graphs(graph, load_graph("general_objects"))
    both = merge_graphs(load_graph("robotics_objects"), load_graph("general_objects"), name="all")
    assert both.root_of("gripper")
    assert both.root_of("sofa")


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"format": "x"}', '{"format": "hallujudge-graph-patch/1", "entries": [{}]}',
     '{"format": "hallujudge-graph-patch/1", "entries": [{"form": "a", "decision": "accept"}]}',
     '{"format": "hallujudge-graph-patch/1", "entries": [{"form": "a", "decision": "yes"}]}'],
)  # fmt: skip
def test_broken_patches_are_refused(text: str) -> None:
    with pytest.raises(GraphFormatError):
        parse_patch(text, name="p.json")


def test_figures_and_pictures() -> None:
    graph = load_graph("robotics_objects")
    figures = statistics_of(graph)
    assert (figures.roots, figures.forms) == (len(graph.roots), len(graph.edges))
    whole = draw_domain(graph)
    assert all(f">{root}<" in whole for root in graph.roots)
    part = draw_neighbourhood(graph, "robot arm")
    assert ">robotic arm<" in part
    assert ">mechanical arm<" in part
    assert "<path" in part
    with pytest.raises(KeyError):
        draw_neighbourhood(graph, "unicorn")


def test_a_large_neighbourhood_is_no_tangle() -> None:
    graph = load_graph("daily_life_objects")
    picture = draw_neighbourhood(graph, "person")
    assert "<path" not in picture
    assert picture.index(">person<") < picture.index(">baby<")
    assert "toddler" in picture
    assert ": 1 root<" in draw_neighbourhood(graph, "sofa").replace("3 forms, ", "")


def test_near_misses_of_long_lists_have_an_end() -> None:
    graph = parse_graph('{"dog": ["puppy"]}', name="dogs")
    matcher = compile_keywords(graph, reading="corrected")
    reference, predicted = ([f"{side}{n} box" for n in range(400)] for side in "ab")
    found = matcher.match(reference, predicted)
    assert len(found.near) == 1000
    assert (found.near[0].predicted, found.near[0].reference) == ("b0 box", "a0 box")
    assert found.counts == (0, 400, 400)
