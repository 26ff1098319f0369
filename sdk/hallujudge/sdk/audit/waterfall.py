"""Steps from one score to another, whose shares add up exactly.

A *stage* is one way of counting: it gives every row of an archive a few numbers. A score is a ratio
of their sums, kept as a fraction, so that nothing is lost to floating point. Each stage changes one
thing in the stage before it, and the change of the score is the share of that cause.

The change from N/D to N'/D' is also the sum over rows of (n' - n - (d' - d) N/D) / D', where n, d
and n', d' are a row's numbers before and after. That is each row's own share.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

__all__ = ["Counts", "Ratio", "Stage", "changed_rows", "columns_of", "score_of", "shares_of"]

Counts: TypeAlias = "Mapping[str, int]"
"""Column -> number, of one row or of all; an absent column is zero."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A score as a ratio of sums of columns; a repeated column counts repeatedly."""

    numerator: tuple[str, ...]
    """Columns that are added up."""
    denominator: tuple[str, ...]
    """The same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One way of counting the rows of an archive."""

    cause: str
    """Name of what changes in this stage."""
    meaning: str
    """What changes, in a sentence."""
    counts: Sequence[Counts]
    """Numbers of each row; an empty mapping if the row does not count."""

    @property
    def rows(self) -> int:
        """How many rows count, repeated ones repeatedly."""
        return sum(row.get("rows", 0) for row in self.counts)


def columns_of(ratios: Iterable[Ratio]) -> frozenset[str]:
    """Return the columns that scores depend on, and that of the rows."""
    used = (column for ratio in ratios for column in (*ratio.numerator, *ratio.denominator))
    return frozenset(["rows", *used])


def _total(counts: Sequence[Counts], columns: Sequence[str]) -> int:
    return sum(row.get(column, 0) for row in counts for column in columns)


def score_of(stage: Stage, ratio: Ratio) -> Fraction | None:
    """Return a score in a stage; None if its denominator is zero."""
    bottom = _total(stage.counts, ratio.denominator)
    return Fraction(_total(stage.counts, ratio.numerator), bottom) if bottom else None


def changed_rows(before: Stage, after: Stage, columns: Collection[str]) -> Iterator[int]:
    """Yield the positions of the rows that two stages count differently in some columns."""
    for place, (old, new) in enumerate(zip(before.counts, after.counts, strict=True)):
        if old != new and any(old.get(name, 0) != new.get(name, 0) for name in columns):
            yield place


def shares_of(before: Stage, after: Stage, ratio: Ratio) -> dict[int, Fraction]:
    """Return each changed row's share of a score's change; they add up to it.

    Rows that do not change the score's columns are left out. Both stages must have the score.
    """
    start = score_of(before, ratio)
    bottom = _total(after.counts, ratio.denominator)
    assert start is not None, "the caller left out scores without a value"
    shares: dict[int, Fraction] = {}
    for place in changed_rows(before, after, {*ratio.numerator, *ratio.denominator}):
        pair = ([before.counts[place]], [after.counts[place]])
        top = _change(*pair, ratio.numerator)
        shares[place] = (top - _change(*pair, ratio.denominator) * start) / bottom
    return shares


def _change(old: Sequence[Counts], new: Sequence[Counts], columns: Sequence[str]) -> int:
    return _total(new, columns) - _total(old, columns)
