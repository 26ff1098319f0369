"""Columns of statistics, and scores computed from their sums.

A metric has three parts. Its *statistics* are a few numbers for each item. The *tally* adds them
up, in any order and in any number of pieces. Its *scores* are functions of the sums. Statistics are
kept, so that intervals and groups never need an item to be judged again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from ..errors import BenchmarkError
from .arrays import BoolArray, FloatArray, np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Direction: TypeAlias = Literal["higher", "lower", "neither"]
"""Which end of a score's range is better."""

Sums: TypeAlias = "Mapping[str, FloatArray]"
"""Column name -> sums: over all clusters, and over all but one of them, one entry for each."""

# A tally has four bytes for a whole number.
_MOST = 2**31
# Step of the numerical derivative; the cube root of a float's precision is best for a central one.
_STEP = 6e-6


class Column(Struct, frozen=True, kw_only=True):
    """One statistic of an item."""

    name: str
    """Name of the column in the totals."""
    meaning: str = ""
    """Short description of the count."""
    integral: bool = True
    """Whether it is always a whole number below 2**31, which is kept in four bytes."""
    label: bool = False
    """Whether the value is a label, such as the given order, so that its sum has no meaning."""
    signed: bool = False
    """Whether it may be negative, as a difference is; a label may always be."""

    def problem(self, number: float) -> str:
        """Return why a finite number can't be this statistic; empty if it can.

        What writes items and what reads them ask this, so that no run is written that can't be
        read.
        """
        if not self.integral:
            return ""
        least = -_MOST if self.signed or self.label else 0
        is_held = number == int(number) and least <= number < _MOST
        return "" if is_held else f"{self.name} is {number!s:.40}"


def are_counts(numbers: Sequence[float]) -> bool:
    """Return whether any column can hold the numbers: whole ones from 0 that a tally can keep."""
    # A set of types and two comparisons take a fifth of the time of a loop, and most are counts.
    return set(map(type, numbers)) == {int} and min(numbers) >= 0 and max(numbers) < _MOST


def checked_counts(
    metric: str, columns: Sequence[Column], counts: Sequence[float]
) -> tuple[float, ...]:
    """Return the counts of an item, which may be those of a declaration from outside.

    Args:
        metric: Name of the metric.
        columns: Its columns, the counted ones first.
        counts: The counts.

    Raises:
        BenchmarkError: A count is none that its column can hold.
    """
    for column, number in () if are_counts(counts) else zip(columns, counts, strict=False):
        if problem := column.problem(number):
            raise BenchmarkError(
                f"{metric}: the count {problem}, which is not a number of things. In the "
                "benchmark's file, declare the count with integral=False"
            )
    return tuple(counts)


class JudgedColumn(Struct, frozen=True, kw_only=True):
    """A column that counts verdicts, which human labels can correct."""

    column: str
    """Name of the column."""
    of: Literal["claim", "item"]
    """Whether the verdicts are on single claims, or on a whole item."""
    scores: tuple[str, ...]
    """Scores that depend on no other verdicts."""
    divided_by: str = ""
    """Column that an item's number of hallucinated claims is divided by, if any."""
    supported: bool = False
    """Whether supported claims are counted, and not hallucinated ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreDefinition:
    """A score as a function of summed columns."""

    name: str
    """The score's name."""
    meaning: str = ""
    """Short description of the score."""
    unit: str = "fraction"
    """Unit: ``fraction``, or the counted noun, such as ``words``."""
    direction: Direction = "neither"
    """Which end of the range is better."""
    columns: tuple[str, ...]
    """The columns that the function reads."""
    value: Callable[[Sums], FloatArray]
    """Function from sums to scores, elementwise; NaN if the score is undefined."""
    smooth: Callable[[Sums], FloatArray] | None = None
    """For a score that rounds its parts or adds to them: the same without, for its interval."""
    count: str = ""
    """Column whose sum is ``n``. If empty, ``n`` counts the scored items."""
    bounded: bool = True
    """Whether best and worst cases exist; a length has neither."""
    low: float = 0.0
    """Lower limit of the score and of its interval."""
    high: float = 1.0
    """Upper limit of the score; infinity for a length."""
    largest_of: tuple[Callable[[Sums], FloatArray], ...] = ()
    """For a maximum of several scores: those scores, which its interval accounts for."""

    @property
    def sentence(self) -> str:
        """Return the meaning, the unit unless it is a fraction, and the direction."""
        unit = "" if self.unit == "fraction" else f" ({self.unit})"
        better = "" if self.direction == "neither" else f"; {self.direction} is better"
        return f"{self.meaning}{unit}{better}"

    @property
    def is_unparsed_rate(self) -> bool:
        """Whether it is a share of answers that could not be parsed, which other scores hide."""
        return self.name.endswith("unparsed_rate")

    def share(self, value: float) -> float:
        """Return where a value lies between the worst end of the range, 0, and the best, 1."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return 1 - share if self.direction == "lower" else share

    def values(self, sums: FloatArray) -> FloatArray:
        """Return the score of every row of sums; NaN where it is undefined."""
        return self.value(self._by_name(sums))

    def slopes(self, sums: FloatArray) -> FloatArray:
        """Return the smooth score's derivatives by its sums, at every row of sums."""
        value = self.smooth or self.value
        columns, slopes = self._by_name(sums), np.empty_like(sums)
        for at, name in enumerate(self.columns):
            # At least this for a sum of zero, of which no share is a step.
            step = _STEP * np.maximum(np.abs(sums[:, at]), 1.0)
            above = value({**columns, name: sums[:, at] + step})
            below = value({**columns, name: sums[:, at] - step})
            slopes[:, at] = (above - below) / (2 * step)
        return slopes

    def _by_name(self, sums: FloatArray) -> Sums:
        return {name: sums[:, at] for at, name in enumerate(self.columns)}


def score_at(score: ScoreDefinition, numbers: Mapping[str, float]) -> float:
    """Return a score of single sums; NaN if it is undefined."""
    # numpy takes ten times as long for one number.
    if isinstance(score.value, Ratio):
        return score.value.of(numbers)
    return float(score.value({name: np.array([numbers[name]]) for name in score.columns})[0])


@dataclass(frozen=True, slots=True)
class Ratio:
    """The ratio of two columns' sums; NaN if the denominator is zero."""

    upper: tuple[str, ...]
    """Columns that are added up to the numerator; a repeated one counts repeatedly."""
    lower: tuple[str, ...]
    """The same for the denominator."""

    def __call__(self, sums: Sums) -> FloatArray:
        """Return the ratio of each entry."""
        top, bottom = _added(sums, self.upper), _added(sums, self.lower)
        # A division by NaN does not warn, as one by zero would.
        return top / np.where(bottom, bottom, np.nan)

    def of(self, numbers: Mapping[str, float]) -> float:
        """Return the ratio of single sums."""
        top = bottom = 0.0
        for name in self.upper:
            top += numbers[name]
        for name in self.lower:
            bottom += numbers[name]
        return top / bottom if bottom else math.nan


def ratio(numerator: str | tuple[str, ...], denominator: str | tuple[str, ...]) -> Ratio:
    """Return the ratio of two columns' sums; NaN if the denominator is zero.

    Args:
        numerator: A column, or several that are added up; a repeated one counts repeatedly.
        denominator: The same.
    """
    return Ratio(_names(numerator), _names(denominator))


def share(
    name: str,
    meaning: str,
    numerator: str | tuple[str, ...],
    denominator: str | tuple[str, ...],
    *,
    direction: Direction = "higher",
    count: str | None = None,
    bounded: bool = True,
) -> ScoreDefinition:
    """Return the score that is the ratio of two columns' sums.

    Args:
        name: Name of the score.
        meaning: Short description of the score.
        numerator: A column, or several that are added up; a repeated one counts repeatedly.
        denominator: The same.
        direction: Which end of the range is better.
        count: Column whose sum is ``n``: by default the denominator; if empty, ``n`` counts the
            scored items.
        bounded: Whether best and worst cases exist.
    """
    columns = tuple(dict.fromkeys((*_names(numerator), *_names(denominator))))
    return ScoreDefinition(
        name=name,
        meaning=meaning,
        direction=direction,
        columns=columns,
        value=ratio(numerator, denominator),
        count=_names(denominator)[-1] if count is None else count,
        bounded=bounded,
    )


def mean_of(*scores: Callable[[Sums], FloatArray]) -> Callable[[Sums], FloatArray]:
    """Return the plain mean of scores; NaN if one of them is NaN."""

    def value(sums: Sums) -> FloatArray:
        total = scores[0](sums)
        for score in scores[1:]:
            total = total + score(sums)
        return total / len(scores)

    return value


def max_of(*scores: Callable[[Sums], FloatArray]) -> Callable[[Sums], FloatArray]:
    """Return the largest of scores; NaN if one of them is NaN."""

    def value(sums: Sums) -> FloatArray:
        largest: FloatArray = np.max(np.stack([score(sums) for score in scores]), axis=0)
        return largest

    return value


def mean_of_known(values: Iterable[float | None]) -> float | None:
    """Return the mean of the numbers among values; None if there are none."""
    known = [value for value in values if value is not None]
    # fsum() rounds once, so that the order of the values changes no digit.
    return math.fsum(known) / len(known) if known else None


def _added(sums: Sums, names: tuple[str, ...]) -> FloatArray:
    total = sums[names[0]]
    for name in names[1:]:
        total = total + sums[name]
    return total


def _names(columns: str | tuple[str, ...]) -> tuple[str, ...]:
    return (columns,) if isinstance(columns, str) else columns


class Grouping:
    """Groups of a table's rows, whose values are columns of the table too.

    Args:
        keys: Key of each row's group.
        mask: The rows that count.
    """

    def __init__(self, keys: FloatArray, mask: BoolArray) -> None:
        self.rows = np.flatnonzero(mask)
        _, first, of = np.unique(keys[self.rows], return_index=True, return_inverse=True)
        self.of: NDArray[np.intp] = of
        self._first = self.rows[first]
        self._size = len(keys)

    def count(self, column: BoolArray) -> FloatArray:
        """Return for each group how many of its rows are true."""
        counts = np.bincount(self.of[column[self.rows]], minlength=len(self._first))
        return counts.astype(np.float64)

    def placed(self, values: BoolArray) -> FloatArray:
        """Return a column with each group's value in one of its rows."""
        out = np.zeros(self._size)
        # In one row only: the sum over all rows then counts each group once.
        out[self._first] = values
        return out
