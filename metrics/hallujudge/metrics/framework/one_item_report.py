"""The report of a single item, made without numpy, because most calls of a server have one item."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from .columns_and_scores import Ratio
from .fast_values import maker_of
from .metric import Metric
from .report import Score
from .results import Outcome

if TYPE_CHECKING:
    from .columns_and_scores import ScoreDefinition
    from .intervals import IntervalSettings
    from .results import ItemResult


_name_of = attrgetter("name")
_make_score = maker_of(Score, ("name", "value", "ci_low", "ci_high", "n"))


def one_row(metric: Metric, result: ItemResult | None) -> OneRow | None:
    """Return the row of a run's only item.

    Args:
        metric: The metric.
        result: The item.

    Returns:
        None if the scores need a table: there is no item, it has no statistics, it has claims
        without a verdict, a judge was called, or the metric makes more columns than an item has.
    """
    if result is None or result.outcome is not Outcome.SCORED or not result.statistics:
        return None
    kind = type(metric)
    plain = kind.derive is Metric.derive and kind.expand is Metric.expand
    if not plain or hasattr(result.evidence, "judging"):
        return None
    row = OneRow(metric, result.statistics)
    return None if metric.unresolved and row.numbers[metric.unresolved] else row


class OneRow:
    """A :class:`Table` with one row, of a plain metric, with the same numbers.

    Arrays of one number take numpy far longer than the numbers take Python: with tables, a call
    with one caption takes a fifth more processor time (docs/decisions/one-item.md).

    Args:
        metric: A metric whose scores are made of its items' statistics as they are.
        statistics: The item's, one number for each of the metric's columns.
    """

    def __init__(self, metric: Metric, statistics: Sequence[float]) -> None:
        self._metric = metric
        # A generator would be resumed for each column.
        names = (metric.unit, *map(_name_of, metric.columns))
        self.numbers = dict(zip(names, map(float, (1, *statistics)), strict=True))
        """The statistics by column, and a one by the metric's unit."""
        self._values = [(score, _value(score, self.numbers)) for score in metric.scores]

    def totals(self) -> dict[str, float]:
        """Return the statistics of the item, without labels, whose sums have no meaning."""
        labels = {column.name for column in self._metric.columns if column.label}
        return {name: of for name, of in self.numbers.items() if name not in labels}

    def scores(self, _: IntervalSettings) -> dict[str, Score]:
        """Return every score of the metric; one item has no intervals."""
        numbers, unit = self.numbers, self._metric.unit
        return {
            score.name: _make_score(
                (score.name, value, None, None, int(numbers[score.count or unit]))
            )
            for score, value in self._values
        }

    def clusters_by_score(self) -> dict[str, int]:
        """Return for each defined score whether it depends on the item: 1, or 0."""
        number = self.numbers.__getitem__
        return {
            score.name: int(any(map(number, score.columns)))
            for score, value in self._values
            if value is not None
        }


def _value(score: ScoreDefinition, numbers: Mapping[str, float]) -> float | None:
    if isinstance(score.value, Ratio):
        value = score.value.of(numbers)
    else:
        import numpy as np

        columns = {name: np.array([numbers[name]]) for name in score.columns}
        value = float(score.value(columns)[0])
    return None if math.isnan(value) else value
