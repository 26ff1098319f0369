"""Patches and merged graphs."""

from __future__ import annotations

import json

import pytest

from hallujudge.synonym_graphs import (
    GraphFormatError,
    GraphInvalidError,
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
