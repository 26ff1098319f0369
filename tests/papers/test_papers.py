"""The five papers, whole: each of 86 items has its figure, or the reason why it is not made."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from papers import infact_items, mementos_items, pope_items, tri_he_items, vidhal_items
from papers.paper_items import PaperItem, collected

ITEMS = collected(
    pope_items.ITEMS,
    vidhal_items.ITEMS,
    tri_he_items.ITEMS,
    infact_items.ITEMS,
    mementos_items.ITEMS,
)
MADE = [item for item in ITEMS if item.compute is not None]
LIST = Path(__file__).parents[3] / "shared" / "papers" / "items.tsv"


def flat(value: Any) -> list[Any]:
    """Return the numbers and texts of nested lists in their order."""
    if isinstance(value, (list, tuple)):
        return [each for part in value for each in flat(part)]
    return [value]


@pytest.mark.parametrize("item", MADE, ids=lambda item: f"{item.number}-{item.paper}-{item.place}")
def test_an_item_has_its_figure(item: PaperItem, request: pytest.FixtureRequest) -> None:
    folder = request.getfixturevalue("goldens") if item.golden else Path()
    assert item.compute is not None
    assert flat(item.compute(folder)) == [
        pytest.approx(each, abs=6e-5) if isinstance(each, float) else each
        for each in flat(item.expected)
    ]


def test_all_86_items_are_there_with_a_place_and_a_source_or_a_reason() -> None:
    assert [item.number for item in ITEMS] == list(range(1, 87))
    assert all(item.place and item.what for item in ITEMS)
    for item in ITEMS:
        assert bool(item.reason) != (item.compute is not None), item
        assert (item.source in ("printed", "released", "own")) == (item.compute is not None), item


def test_papers_and_numbers_are_those_of_the_list() -> None:
    if not LIST.is_file():
        pytest.skip(f"golden data is absent: {os.fspath(LIST)}")
    rows = [line.split("\t") for line in LIST.read_text("utf-8").splitlines()[1:]]
    listed = {int(row[0].strip("v")): row[1].replace(" ", "-") for row in rows}
    assert {item.number: item.paper for item in ITEMS} == listed
