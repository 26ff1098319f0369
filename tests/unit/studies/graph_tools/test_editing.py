"""Patches and merged graphs."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hallujudge.synonym_graphs import (
    GraphFormatError,
    GraphInvalidError,
    SynonymGraph,
    compile_keywords,
    load_graph,
    parse_graph,
)
from hallujudge.synonym_graphs.tools import (
    GraphPatch,
    PatchEntry,
    apply_patch,
    difference,
    merge_graphs,
    parse_patch,
    statistics_of,
)

WORDS = {"couch": {"": ["sofa"]}, "pick": {"": ["take"], "up": ["lift", "take"]}}


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
    assert compile_keywords(grown, variant="published").counts(["sofa"], ["settee"]).hits == 1
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


def graph_of(name: str = "g", version: str = "1", **roots: str) -> SynonymGraph:
    """Return a graph: root -> its forms, joined by commas."""
    links = {form: root for root, forms in roots.items() for form in forms.split(",") if form}
    text = json.dumps({**{root: root for root in roots}, **links})
    return replace(parse_graph(text, name=name), name=name, version=version)


def accepted(**roots: str) -> GraphPatch:
    entries = (PatchEntry(form=f, decision="accept", root=root) for f, root in roots.items())
    return GraphPatch(graph="", entries=tuple(entries))


def test_a_keyword_with_a_second_root_is_ambiguous_and_others_stay() -> None:
    graph = graph_of(dog="puppy,hound", cat="kitten", bat="")
    grown = apply_patch(graph, accepted(puppy="cat", club="bat"))
    assert grown.roots_of("puppy") == ("dog", "cat")
    assert grown.roots_of("club") == ("bat",)
    assert grown.roots_of("hound") == ("dog",)
    assert grown.ambiguous == {"puppy"}


@pytest.mark.parametrize(
    ("version", "given", "then"),
    [
        ("1", "", "2"),
        ("9", "", "10"),
        ("released", "", "released+1"),
        ("released+1", "", "released+2"),
        ("a+b", "", "a+b+1"),
        ("1", "mine", "mine"),
    ],
)
def test_a_patched_graph_has_the_next_version(version: str, given: str, then: str) -> None:
    graph = graph_of(version=version, dog="puppy")
    assert apply_patch(graph, accepted(hound="dog"), version=given).version == then


def test_merged_forms_keep_the_roots_of_both() -> None:
    first = graph_of("one", dog="puppy,hound", cat="")
    second = graph_of("two", hound="beagle", cat="puppy", fox="")
    both = merge_graphs(first, second, version="3")
    assert (both.name, both.version) == ("one", "3")
    # "hound" is a form of the first graph, so that its own forms lead to the first graph's root.
    assert both.roots_of("beagle") == ("dog",)
    assert both.roots_of("puppy") == ("dog", "cat")
    assert both.ambiguous == {"puppy"}
    assert set(both.roots) == {"dog", "cat", "fox"}
    assert merge_graphs(first, second, name="x").label != both.label


def test_differences_name_what_came_and_what_went() -> None:
    old, new = graph_of(dog="puppy", cat=""), graph_of(dog="hound", fox="")
    there, back = difference(old, new), difference(new, old)
    assert there.added == back.removed == (("fox", "fox"), ("hound", "dog"))
    assert there.removed == back.added == (("cat", "cat"), ("puppy", "dog"))
    assert there.new_roots == back.lost_roots == ("fox",)
    assert there.lost_roots == back.new_roots == ("cat",)


def test_statistics() -> None:
    graph = apply_patch(graph_of(dog="puppy,hot dog", cat="kitten", fox=""), accepted(puppy="cat"))
    found = statistics_of(graph)
    assert (found.roots, found.forms, found.edges) == (3, 6, 4)
    assert (found.ambiguous, found.phrases, found.alone) == (1, 1, 1)
    assert found.largest == (("cat", 2), ("dog", 2))


def test_decisions_are_about_keywords_of_the_patch() -> None:
    forms = ("a", "b", "c")
    patch = GraphPatch(graph="g", entries=tuple(PatchEntry(form=form) for form in forms))
    made = patch.decided({"a": "dog", "b": "cat"}, ["b"])
    assert [(entry.form, entry.decision, entry.root) for entry in made.entries] == [
        ("a", "accept", "dog"),
        ("b", "reject", ""),
        ("c", "pending", ""),
    ]
    for accept, reject in (({"x": "dog"}, []), ({}, ["x"])):
        with pytest.raises(KeyError, match="x"):
            patch.decided(accept, reject)


def test_a_patch_file_says_where_it_is_wrong() -> None:
    entry = {"form": "a", "decision": "accept", "root": "dog", "count": "many"}
    data = {"format": "hallujudge-graph-patch/1", "graph": "g", "entries": [entry]}
    (read,) = parse_patch(json.dumps(data), name="p.json").entries
    assert read == PatchEntry(form="a", decision="accept", root="dog", count=0)
    for wrong in ({"form": 1}, {"form": "a", "root": 1}, {"form": "a", "decision": "accept"}):
        text = json.dumps({**data, "entries": [entry, wrong]})
        with pytest.raises(GraphFormatError) as caught:
            parse_patch(text, name="p.json")
        assert "$.entries[1]" in str(caught.value)
    with pytest.raises(GraphFormatError, match=r"\$\.format"):
        parse_patch(json.dumps({**data, "format": "hallujudge-graph-patch/2"}), name="p.json")
