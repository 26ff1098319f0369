"""Which synonym graph CHAIR uses, and what the report says about it."""

from __future__ import annotations

import pytest

from hallujudge.sdk import Client, Report

ONE_IMAGE = "Intervals are unreliable below 50 clusters (images or videos); every score rests on 1."


def report(variant: str = "", graph: str | None = None) -> Report:
    with Client.embedded() as client:
        return client.score(
            "chair",
            responses={"1": "A bus."},
            references={"1": ["bus"]},
            variant=variant,
            graph=graph,
        )


@pytest.mark.parametrize(
    ("variant", "graph"), [("published", "coco-published"), ("corrected", "coco")]
)
def test_each_variant_has_its_own_default_graph(variant: str, graph: str) -> None:
    made = report(variant=variant)
    assert made.settings["graph"] == graph
    assert made.notes[-1] == ONE_IMAGE
    assert not [note for note in made.notes if note.startswith("Variant")]


@pytest.mark.parametrize(
    ("variant", "graph", "named"),
    [("published", "coco", "coco-published"), ("corrected", "coco-published", "coco")],
)
def test_a_graph_of_the_other_variant_is_noted(variant: str, graph: str, named: str) -> None:
    notes = report(variant=variant, graph=graph).notes
    begin = f"Variant {variant} with graph {graph}"
    assert [note.partition(": ")[0] for note in notes] == [begin, ONE_IMAGE]
    assert named in notes[0]


def test_the_published_default_keeps_the_published_error() -> None:
    """The published singular turns "bus" into "bu", so that no bus is found."""
    assert report().totals["mentioned"] == 0
    assert report(variant="corrected").totals["mentioned"] == 1
