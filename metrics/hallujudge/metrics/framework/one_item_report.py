"""The report of a single item, made without numpy.

Most calls of a server ask for one item's scores; what is known of a metric before there are
numbers is computed once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from .columns_and_scores import Ratio
from .fast_values import maker_of
from .metric import Metric
from .report import Score
from .results import Outcome

if TYPE_CHECKING:
    from .columns_and_scores import ScoreDefinition
    from .intervals import IntervalSettings
    from .results import ItemResult
    from .signature import Signature


_KEPT = 256


class ScoreFacts(NamedTuple):
    """What is known of a score."""

    name: str
    """Its name."""
    definition: ScoreDefinition
    """Its definition."""
    ratio: Ratio | None
    """Its value, if that is a ratio."""
    counted: str
    """The column whose sum is ``n``."""
    columns: tuple[str, ...]
    """The columns that it depends on."""


class MetricFacts(NamedTuple):
    """What is known of a metric."""

    signature: Signature
    """Its signature."""
    plain: bool
    """Whether its scores are made of its items' statistics as they are."""
    names: tuple[str, ...]
    """Its unit and its columns."""
    labels: tuple[str, ...]
    """The columns whose sums have no meaning."""
    unresolved: str
    """The column that counts claims without a verdict, if any."""
    scores: tuple[ScoreFacts, ...]
    """Its scores."""


@lru_cache(_KEPT)
def facts_of(metric: Metric) -> MetricFacts:
    """Return what is known of a metric, which is the same for equal metrics."""
    kind = type(metric)
    return MetricFacts(
        signature=metric.signature,
        plain=kind.derive is Metric.derive and kind.expand is Metric.expand,
        names=(metric.unit, *(column.name for column in metric.columns)),
        labels=tuple(column.name for column in metric.columns if column.label),
        unresolved=metric.unresolved,
        scores=tuple(
            ScoreFacts(
                name=score.name,
                definition=score,
                ratio=score.value if isinstance(score.value, Ratio) else None,
                counted=score.count or metric.unit,
                columns=score.columns,
            )
            for score in metric.scores
        ),
    )


_score = maker_of(Score, ("name", "value", "ci_low", "ci_high", "n"))


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
    facts = facts_of(metric)
    if not facts.plain or hasattr(result.evidence, "judging"):
        return None
    row = OneRow(facts, result.statistics)
    return None if facts.unresolved and row.numbers[facts.unresolved] else row


class OneRow:
    """A :class:`Table` with one row, of a plain metric, with the same numbers.

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
