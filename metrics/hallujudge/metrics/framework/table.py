"""The columns of a tally, by item and by cluster, and the scores that they give."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from .intervals import IntervalSettings, counting_clusters, score_interval
from .metric import is_expanding, is_resolving
from .report import Bound, Score

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .metric import FloatArray, Metric, ScoreDefinition, Sums

__all__ = ["Clusters", "Table"]

_WHOLE_BELOW = 2.0**53
# So few numbers are added faster by Python than by several calls of numpy.
_FEW = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Clusters:
    """The sums of a run by cluster."""

    keys: NDArray[np.uint64]
    """The clusters, in ascending order; equal in runs about the same images."""
    columns: Mapping[str, FloatArray]
    """Column -> sums in the order of the keys."""


class Table:
    """Statistics as columns, by item and by cluster."""

    def __init__(
        self,
        metric: Metric,
        clusters: array[int] | NDArray[np.uint64],
        weights: array[int] | FloatArray,
        columns: Iterable[array[int] | array[float] | FloatArray],
    ) -> None:
        import numpy as np

        self._metric = metric
        self._values: dict[str, float | None] = {}
        self._sums: dict[int, float] = {}
        self._keys = np.array(clusters, dtype=np.uint64)
        self._items = {metric.unit: np.array(weights, dtype=np.float64)} | {
            column.name: np.array(numbers, dtype=np.float64)
            for column, numbers in zip(metric.columns, columns, strict=True)
        }
        if is_expanding(metric):
            self._items |= metric.expand(self._items)

    def where(self, mask: NDArray[np.bool_]) -> Table:
        """Return the rows of one group."""
        columns = [self._items[column.name][mask] for column in self._metric.columns]
        weights = self._items[self._metric.unit][mask]
        return Table(self._metric, self._keys[mask], weights, columns)

    def repeated(self, times: FloatArray) -> Table:
        """Return the rows, each multiplied by its factor."""
        columns = [self._items[column.name] * times for column in self._metric.columns]
        return Table(self._metric, self._keys, self._items[self._metric.unit] * times, columns)

    def totals(self) -> dict[str, float]:
        """Return the sums of the statistics over all items."""
        return {self._metric.unit: self._sum(self._items[self._metric.unit])} | {
            column.name: self._sum(self._items[column.name])
            for column in self._metric.columns
            if not column.label
        }

    def scores(self, intervals: IntervalSettings) -> dict[str, Score]:
        """Return every score of the metric with its interval."""
        return {score.name: self._score(score, intervals) for score in self._metric.scores}

    @property
    def clusters(self) -> int:
        """Return the number of clusters."""
        return len(self._derived[self._metric.unit])

    def by_cluster(self) -> Clusters:
        """Return the clusters in the order of their keys."""
        import numpy as np

        keys, first = np.unique(self._keys, return_index=True)
        columns = self._derived
        if len(keys) == len(self._keys):
            # Clusters of one item each are still in the order of items.
            columns = {name: column[first] for name, column in columns.items()}
        return Clusters(keys=keys, columns=columns)

    def clusters_by_score(self) -> dict[str, int]:
        """Return the number of clusters of each defined score."""
        return {
            score.name: self._counting(score)
            for score in self._metric.scores
            if self._score_value(score) is not None
        }

    def _counting(self, score: ScoreDefinition) -> int:
        """Return the number of clusters that a score depends on."""
        if self.clusters <= _FEW:
            rows = zip(*(self._derived[name].tolist() for name in score.columns), strict=True)
            return sum(map(any, rows))
        return len(counting_clusters(self._cluster_rows(score)))

    def _cluster_rows(self, score: ScoreDefinition) -> FloatArray:
        import numpy as np

        return np.column_stack([self._derived[name] for name in score.columns])

    def _score_value(self, score: ScoreDefinition) -> float | None:
        if score.name not in self._values:
            self._values[score.name] = _value(score, self._score_sums)
        return self._values[score.name]

    def _score(self, score: ScoreDefinition, intervals: IntervalSettings) -> Score:
        clusters, value = self._derived, self._score_value(score)
        ends = None
        if value is not None and self.clusters > 1:
            ends = score_interval(self._cluster_rows(score), score, intervals)
        return Score(
            name=score.name,
            value=value,
            ci_low=ends[0] if ends else None,
            ci_high=ends[1] if ends else None,
            n=int(self._sum(clusters[score.count or self._metric.unit])),
        )

    def bounds(self, unscored: int, largest: Sequence[float]) -> dict[str, Bound]:
        """Return the bounds of each score; empty if everything has a verdict.

        Args:
            unscored: How many unscored items there are.
            largest: For each column the largest number that a scored item has.
        """
        if not unscored and not self._unresolved():
            return {}
        best, worst = (self._imagined(unscored, largest, best=best) for best in (True, False))
        return {
            score.name: Bound(best=best_value, worst=worst_value)
            for score in self._metric.scores
            if score.bounded
            and (best_value := _value(score, best)) is not None
            and (worst_value := _value(score, worst)) is not None
        }

    def _unresolved(self) -> bool:
        """Return whether a scored item has a claim without a verdict."""
        metric = self._metric
        return is_resolving(metric) and bool(self._items[metric.unresolved].any())

    def _imagined(
        self, unscored: int, largest: Sequence[float], *, best: bool
    ) -> dict[str, FloatArray]:
        """Return sums with all unscored items and claims at one extreme."""
        import numpy as np

        metric = self._metric
        items: Mapping[str, FloatArray] = self._items
        if is_resolving(metric):
            items = metric.resolve(items, best=best)
        clusters = metric.derive(_cluster_sums(self._keys, items))
        observed = {
            column.name: np.array([number])
            for column, number in zip(metric.columns, largest, strict=True)
        }
        row = {metric.unit: 1.0, **metric.extreme(observed, best=best)}
        extreme = metric.derive({name: np.array([row[name]]) for name in self._items})
        return {
            name: np.array([_exact_sum(clusters[name]) + unscored * float(extreme[name][0])])
            for name in extreme
        }

    @cached_property
    def _score_sums(self) -> Mapping[str, FloatArray]:
        """The sums of the columns that scores need."""
        import numpy as np

        if self.clusters == 1:
            return self._derived
        needed = {name for score in self._metric.scores for name in score.columns}
        return {name: np.array([self._sum(self._derived[name])]) for name in needed}

    def _sum(self, column: FloatArray) -> float:
        """Return the exact sum of one of this table's columns, which several scores may need."""
        # Columns live as long as the table, and derived ones are mostly those of the items.
        if (known := self._sums.get(id(column))) is None:
            known = self._sums[id(column)] = _exact_sum(column)
        return known

    @cached_property
    def _derived(self) -> Mapping[str, FloatArray]:
        return self._metric.derive(_cluster_sums(self._keys, self._items))


def _cluster_sums(
    keys: NDArray[np.uint64], items: Mapping[str, FloatArray]
) -> dict[str, FloatArray]:
    """Return sums by cluster, independent of the order of items."""
    import numpy as np

    if len(keys) < 2:
        return dict(items)
    in_order = np.sort(keys)
    if not np.any(in_order[1:] == in_order[:-1]):
        return dict(items)
    order = np.lexsort([*items.values(), keys])
    starts = np.flatnonzero(np.diff(keys[order], prepend=~keys[order[:1]]))
    return {name: np.add.reduceat(column[order], starts) for name, column in items.items()}


def _exact_sum(numbers: FloatArray) -> float:
    """Return the correctly rounded sum, which does not depend on the order."""
    import numpy as np

    if len(numbers) <= _FEW:
        return math.fsum(numbers.tolist())
    # Sums of whole numbers are exact in any order as long as a float holds them exactly.
    if np.array_equal(numbers, np.rint(numbers)) and np.abs(numbers).sum() < _WHOLE_BELOW:
        return float(numbers.sum())
    return math.fsum(numbers.tolist())


def _value(score: ScoreDefinition, sums: Sums) -> float | None:
    value = float(score.value(sums)[0])
    return None if math.isnan(value) else value
