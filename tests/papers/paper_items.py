"""An item of a paper: its place, its figure and where the figure is from, or why it is not made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

Check: TypeAlias = Callable[[Path], Any]
"""Computes an item's figure; takes the folder of golden data, which many do not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperItem:
    """A line of the list of 86 items."""

    number: int
    """Its number in that list."""
    paper: str
    """The paper."""
    place: str
    """Section, table, figure or formula."""
    what: str
    """What it is."""
    source: str
    """Where the expected figure is from: ``printed``, ``released`` or ``own`` (a plain oracle)."""
    expected: Any = None
    """The figure."""
    compute: Check | None = None
    """Computes it; None for an item that is not made."""
    reason: str = ""
    """Why it is not made."""
    golden: bool = False
    """Whether it reads the golden data."""


def collected(*groups: Mapping[int, PaperItem]) -> tuple[PaperItem, ...]:
    """Return the items of all papers by number.

    Raises:
        ValueError: Two have one number.
    """
    every = [item for group in groups for item in group.values()]
    numbers = [item.number for item in every]
    if len(set(numbers)) != len(numbers):
        raise ValueError("two items have one number")
    return tuple(sorted(every, key=lambda item: item.number))


class Items(dict[int, PaperItem]):
    """The items of one paper, which are declared one after another."""

    def __init__(self, paper: str) -> None:
        super().__init__()
        self._paper = paper

    def is_made(
        self,
        number: int,
        place: str,
        what: str,
        source: str,
        expected: Any,
        *,
        golden: bool = False,
    ) -> Callable[[Check], Check]:
        """Return a decorator of the function that computes the item's figure."""

        def add(compute: Check) -> Check:
            self[number] = PaperItem(
                number=number,
                paper=self._paper,
                place=place,
                what=what,
                source=source,
                expected=expected,
                compute=compute,
                golden=golden,
            )
            return compute

        return add

    def is_not_made(self, number: int, place: str, what: str, reason: str) -> None:
        """Declare an item that is not made, with the reason."""
        self[number] = PaperItem(
            number=number, paper=self._paper, place=place, what=what, source="", reason=reason
        )
