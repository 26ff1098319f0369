"""What a metric is: columns of statistics, and scores made of their sums.

A metric has three parts. Its *statistics* are a few numbers for each item. The *tally* adds them
up, in any order and in any number of pieces. Its *scores* are functions of the sums. Statistics are
kept, so that intervals and groups never need an item to be judged again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray: TypeAlias = NDArray[np.float64]

    from .signature import Signature

__all__ = ["Column", "ExpandingMetric", "Metric", "ScoreDefinition", "Sums", "ratio"]

Sums: TypeAlias = "Mapping[str, FloatArray]"
"""Column name -> sums, one entry for each replicate (a single one for the score itself)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One statistic of an item."""

    name: str
    """Its name, as totals show it."""
    integral: bool = True
    """Whether it is always a whole number below 2**31, which is kept in four bytes."""
    label: bool = False
    """Whether it names a kind, such as which order was given, so that its sum says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreDefinition:
    """A score as a function of summed columns."""

    name: str
    """The score's name."""
    columns: tuple[str, ...]
    """The columns that the function reads."""
    value: Callable[[Sums], FloatArray]
    """Sums -> scores, entry by entry; NaN where the score isn't defined."""
    count: str = ""
    """Column whose sum is ``n``; empty: ``n`` counts the scored items."""
    bounded: bool = True
    """Whether best and worst cases exist; a length has neither."""
    higher_is_better: bool = False
    """Which end of the range is the good one."""


def ratio(numerator: str, denominator: str) -> Callable[[Sums], FloatArray]:
    """The ratio of two sums; NaN where the denominator is zero."""

    def value(sums: Sums) -> FloatArray:
        import numpy as np

        top, bottom = sums[numerator], sums[denominator]
        out = np.full(top.shape, np.nan)
        np.divide(top, bottom, out=out, where=bottom != 0)
        return out

    return value


@runtime_checkable
class ExpandingMetric(Protocol):
    """A metric with columns that are made from a whole table of items.

    How often the commonest answer was given needs to know which one that is; the columns that count
    it are made when a table is scored, from a ``label`` column.
    """

    def expand(self, items: Mapping[str, FloatArray]) -> Mapping[str, FloatArray]:
        """More columns, of the same length, for the items of a table."""
        ...


class Metric(Protocol):
    """What every metric declares; the tally and the engine need nothing else of it."""

    @property
    def name(self) -> str:
        """The metric's name, such as ``chair``."""
        ...

    @property
    def variant(self) -> str:
        """The variant, such as ``published``."""
        ...

    @property
    def unit(self) -> str:
        """What one item is called in totals, such as ``captions``; a column of ones."""
        ...

    @property
    def columns(self) -> tuple[Column, ...]:
        """The statistics of an item, in order."""
        ...

    @property
    def scores(self) -> tuple[ScoreDefinition, ...]:
        """The scores, in the order of the report."""
        ...

    @property
    def folds(self) -> bool:
        """Whether clusters may be added up before scores are made of them.

        True where columns are whole numbers whose sums are all that counts; then memory stops
        growing with the number of items.
        """
        ...

    @property
    def signature(self) -> Signature:
        """What the numbers depend on, beside the inputs and the interval settings."""
        ...

    def derive(self, clusters: Mapping[str, FloatArray]) -> Mapping[str, FloatArray]:
        """Columns of clusters that scores need beside the summed statistics.

        A score that is a mean over images of each image's own ratio needs the ratio as a column.
        Most metrics have none and give the clusters back.
        """
        ...

    def extreme(self, observed: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, float]:
        """Statistics that an unscored item would have had at its best, or at its worst.

        Args:
            observed: For each column the largest number that a scored item has.
            best: Which of the two.
        """
        ...
