"""The scores of a single item, which most calls of a server ask for, without numpy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .metric_facts import MetricFacts, ScoreFacts, facts_of
from .report import Score
from .result import Outcome
from .slots import maker_of

if TYPE_CHECKING:
    from .intervals import IntervalSettings
    from .metric import Metric
    from .result import ItemResult

__all__ = ["OneRow", "one_row"]

_score = maker_of(Score, ("name", "value", "ci_low", "ci_high", "n"))


def one_row(metric: Metric, result: ItemResult | None) -> OneRow | None:
    """Return the row of a run's only item.

    Args:
        metric: The metric.
        result: The item.

    Returns:
        None if the scores need a table: there is no item, it has no statistics or claims without a
        verdict, a judge was asked, or the metric makes more columns than an item has.
    """
    if result is None or result.outcome is not Outcome.SCORED or not result.statistics:
        return None
    facts = facts_of(metric)
    if not facts.plain or hasattr(result.evidence, "judging"):
        return None
    row = OneRow(facts, result.statistics)
    return None if facts.unresolved and row.numbers[facts.unresolved] else row


class OneRow:
    """A :class:`Table` with one row, of a plain metric. It gives the same numbers.

    Arrays of one number take numpy far longer than the numbers take Python: a report on one item
    took a fifth of the processor time of a call.

    Args:
        facts: What is known of the metric.
        statistics: The item's, one number for each of the metric's columns.
    """

    def __init__(self, facts: MetricFacts, statistics: Sequence[float]) -> None:
        self._facts = facts
        self.numbers = dict(zip(facts.names, map(float, (1, *statistics)), strict=True))
        """The statistics by column, and a one by the metric's unit."""
        self._values = [_value(score, self.numbers) for score in facts.scores]

    def totals(self) -> dict[str, float]:
        """Return the statistics of the item."""
        if not self._facts.labels:
            return self.numbers
        return {name: of for name, of in self.numbers.items() if name not in self._facts.labels}

    def scores(self, _: IntervalSettings) -> dict[str, Score]:
        """Return every score of the metric; one item has no intervals."""
        numbers = self.numbers
        return {
            score.name: _score((score.name, value, None, None, int(numbers[score.counted])))
            for score, value in zip(self._facts.scores, self._values, strict=True)
        }

    def clusters_by_score(self) -> dict[str, int]:
        """Return for each defined score whether it depends on the item: 1, or 0."""
        number = self.numbers.__getitem__
        return {
            score.name: int(any(map(number, score.columns)))
            for score, value in zip(self._facts.scores, self._values, strict=True)
            if value is not None
        }


def _value(score: ScoreFacts, numbers: Mapping[str, float]) -> float | None:
    if score.ratio is not None:
        value = score.ratio.of(numbers)
    else:
        import numpy as np

        of = score.definition.value
        value = float(of({name: np.array([numbers[name]]) for name in score.columns})[0])
    return None if math.isnan(value) else value
