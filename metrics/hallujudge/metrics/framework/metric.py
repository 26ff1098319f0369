"""Interfaces of a metric: columns of statistics, and scores computed from their sums.

A metric has three parts. Its *statistics* are a few numbers for each item. The *tally* adds them
up, in any order and in any number of pieces. Its *scores* are functions of the sums. Statistics are
kept, so that intervals and groups never need an item to be judged again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Literal,
    Protocol,
    TypeAlias,
    TypeGuard,
    runtime_checkable,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray: TypeAlias = NDArray[np.float64]

    from .definitions import Direction
    from .signature import Signature

__all__ = [
    "Column",
    "ExpandingMetric",
    "JudgedColumn",
    "Metric",
    "Ratio",
    "RepeatingMetric",
    "ResolvingMetric",
    "ScoreDefinition",
    "Sums",
    "is_expanding",
    "is_repeating",
    "is_resolving",
    "ratio",
    "share",
]

Sums: TypeAlias = "Mapping[str, FloatArray]"
"""Column name -> sums: over all clusters, and over all but one of them, one entry for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One statistic of an item."""

    name: str
    """Name of the column in the totals."""
    meaning: str = ""
    """Short description of the count."""
    integral: bool = True
    """Whether it is always a whole number below 2**31, which is kept in four bytes."""
    label: bool = False
    """Whether the value is a label, such as the given order, so that its sum has no meaning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedColumn:
    """A column that counts verdicts, which human labels can correct."""

    column: str
    """Name of the column."""
    of: Literal["claim", "item"]
    """Whether the verdicts are on single claims, or on a whole item."""
    scores: tuple[str, ...]
    """Scores that depend on no other verdicts."""
    divided_by: str = ""
    """Column that an item's number of hallucinated claims is divided by; empty: it is not."""
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
    """Column whose sum is ``n``; empty: ``n`` counts the scored items."""
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


def is_expanding(metric: object) -> TypeGuard[ExpandingMetric]:
    """Return whether a metric is an :class:`ExpandingMetric`."""
    return _follows(metric, ExpandingMetric)


def is_resolving(metric: object) -> TypeGuard[ResolvingMetric]:
    """Return whether a metric is a :class:`ResolvingMetric`."""
    return _follows(metric, ResolvingMetric)


def is_repeating(metric: object) -> TypeGuard[RepeatingMetric]:
    """Return whether a metric is a :class:`RepeatingMetric`."""
    return _follows(metric, RepeatingMetric)


_FOLLOWS: dict[tuple[type, type], bool] = {}


def _follows(metric: object, protocol: type) -> bool:
    """Return whether a metric follows a protocol, which all metrics of its class do or don't.

    ``isinstance`` takes 30 microseconds for a protocol, and short reports asked it four times.
    """
    key = type(metric), protocol
    if (known := _FOLLOWS.get(key)) is None:
        known = _FOLLOWS[key] = isinstance(metric, protocol)
    return known


@dataclass(frozen=True, slots=True)
class Ratio:
    """The ratio of two columns' sums; NaN if the denominator is zero."""

    upper: tuple[str, ...]
    """Columns that are added up to the numerator; a repeated one counts repeatedly."""
    lower: tuple[str, ...]
    """The same for the denominator."""

    def __call__(self, sums: Sums) -> FloatArray:
        """Return the ratio of each entry."""
        import numpy as np

        top, bottom = _added(sums, self.upper), _added(sums, self.lower)
        return top / np.where(bottom, bottom, np.nan)

    def of(self, numbers: Mapping[str, float]) -> float:
        """Return the ratio of single sums, which numpy takes ten times as long for."""
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
        count: Column whose sum is ``n``; None: the denominator; empty: the scored items.
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


def _added(sums: Sums, names: tuple[str, ...]) -> FloatArray:
    total = sums[names[0]]
    for name in names[1:]:
        total = total + sums[name]
    return total


def _names(columns: str | tuple[str, ...]) -> tuple[str, ...]:
    return (columns,) if isinstance(columns, str) else columns


@runtime_checkable
class ExpandingMetric(Protocol):
    """A metric with columns that are made from a whole table of items.

    How often the commonest answer was given needs to know which one that is; the columns that count
    it are made when a table is scored, from a ``label`` column.
    """

    def expand(self, items: Mapping[str, FloatArray]) -> Mapping[str, FloatArray]:
        """Return more columns, of the same length, for the items of a table."""
        ...


@runtime_checkable
class ResolvingMetric(Protocol):
    """A metric whose scored items may hold claims without a verdict."""

    @property
    def unresolved(self) -> str:
        """The column that counts an item's claims without a verdict."""
        ...

    def resolve(self, items: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, FloatArray]:
        """Return the columns with every claim without a verdict at its best, or at its worst."""
        ...


@runtime_checkable
class RepeatingMetric(Protocol):
    """A metric whose items may belong to several groups of a field."""

    @property
    def split_fields(self) -> frozenset[str]:
        """Fields whose value is a list of groups, separated by commas."""
        ...

    @property
    def repeated_by(self) -> str:
        """The field by whose groups an item counts repeatedly in the overall scores, or empty."""
        ...


class Metric(Protocol):
    """Interface of a metric for the tally."""

    @property
    def name(self) -> str:
        """Return the metric's name, such as ``chair``."""
        ...

    @property
    def variant(self) -> str:
        """Return the variant's name, such as ``published``."""
        ...

    @property
    def unit(self) -> str:
        """Return the plural noun for items in totals, such as ``captions``; a column of ones."""
        ...

    @property
    def columns(self) -> tuple[Column, ...]:
        """Return the statistics of an item, in order."""
        ...

    @property
    def scores(self) -> tuple[ScoreDefinition, ...]:
        """Return the scores, in the order of the report."""
        ...

    @property
    def judged(self) -> tuple[JudgedColumn, ...]:
        """Return the columns that human labels can correct."""
        ...

    @property
    def folds(self) -> bool:
        """Return whether clusters may be summed before scores are computed.

        True where columns are whole numbers whose sums are all that counts; then memory stops
        growing with the number of items.
        """
        ...

    @property
    def signature(self) -> Signature:
        """Return the fields that the scores depend on, other than inputs and interval settings."""
        ...

    def derive(self, clusters: Mapping[str, FloatArray]) -> Mapping[str, FloatArray]:
        """Return additional columns of clusters that scores need.

        A score that is a mean over images of each image's own ratio needs the ratio as a column.
        Most metrics have none and return the clusters.
        """
        ...

    def notes_on(self, totals: Mapping[str, float]) -> tuple[str, ...]:
        """Return sentences for the report about what its scores count.

        Args:
            totals: The sums of the columns over all items.
        """
        ...

    def extreme(self, observed: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, float]:
        """Return the statistics of an unscored item at its best, or at its worst.

        Args:
            observed: For each column the largest number that a scored item has.
            best: Which of the two.
        """
        ...
