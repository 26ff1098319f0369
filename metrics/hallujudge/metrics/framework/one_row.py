"""The scores of a single item, which most calls of a server ask for, without numpy."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from .base import MetricBase
from .metric import Ratio, is_expanding, is_resolving
from .report import Bound, Score
from .table import Table

if TYPE_CHECKING:
    from .intervals import IntervalSettings
    from .metric import Metric, ScoreDefinition

__all__ = ["OneRow", "is_plain"]


def is_plain(metric: Metric) -> bool:
    """Return whether a metric's scores are made of its items' statistics as they are."""
    return _keeps_sums(type(metric)) and not is_expanding(metric)


@cache
def _keeps_sums(metric: type) -> bool:
    return getattr(metric, "derive", None) is MetricBase.derive


class OneRow:
    """A :class:`Table` with one row, of a plain metric. It gives the same numbers.

    Arrays of one number take numpy far longer than the numbers take Python: a report on one item
    took a fifth of the processor time of a call.

    Args:
        metric: The metric.
        key: The item's cluster.
        weight: How many items the row stands for.
        columns: The statistics, one number in each.
    """

    clusters = 1

    def __init__(
        self, metric: Metric, key: int, weight: int, columns: Sequence[array[int] | array[float]]
    ) -> None:
        self._metric = metric
        self._row = key, weight, columns
        self._numbers = {metric.unit: float(weight)}
        for column, numbers in zip(metric.columns, columns, strict=True):
            self._numbers[column.name] = float(numbers[0])
        self._values = {score.name: self._value(score) for score in metric.scores}

    def totals(self) -> dict[str, float]:
        """Return the statistics of the item."""
        totals = dict(self._numbers)
        for column in self._metric.columns:
            if column.label:
                del totals[column.name]
        return totals

    def scores(self, _: IntervalSettings) -> dict[str, Score]:
        """Return every score of the metric; one item has no intervals."""
        numbers, values, unit = self._numbers, self._values, self._metric.unit
        return {
            score.name: Score(
                name=score.name,
                value=values[score.name],
                ci_low=None,
                ci_high=None,
                n=int(numbers[score.count or unit]),
            )
            for score in self._metric.scores
        }

    def clusters_by_score(self) -> dict[str, int]:
        """Return for each defined score whether it depends on the item: 1, or 0."""
        numbers, values = self._numbers, self._values
        return {
            score.name: int(any(map(numbers.__getitem__, score.columns)))
            for score in self._metric.scores
            if values[score.name] is not None
        }

    def bounds(self, unscored: int, largest: Sequence[float]) -> Mapping[str, Bound]:
        """Return the bounds of each score; empty if everything has a verdict."""
        metric = self._metric
        if not unscored and not (is_resolving(metric) and self._numbers[metric.unresolved]):
            return {}
        key, weight, columns = self._row
        table = Table(metric, array("Q", [key]), array("q", [weight]), columns)
        return table.bounds(unscored, largest)

    def _value(self, score: ScoreDefinition) -> float | None:
        of = score.value
        if isinstance(of, Ratio):
            value = of.of(self._numbers)
        else:
            import numpy as np

            value = float(of({name: np.array([self._numbers[name]]) for name in score.columns})[0])
        return None if math.isnan(value) else value
