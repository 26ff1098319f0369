"""The report of a single item, made without numpy, because most calls of a server have one item."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from .columns_and_scores import Ratio
from .fast_values import maker_of
from .intervals import small_sample_notes
from .metric import Metric
from .report import Coverage, Report, Score
from .results import Outcome
from .signature import DataSums, data_fields

if TYPE_CHECKING:
    from .columns_and_scores import ScoreDefinition
    from .intervals import IntervalSettings
    from .results import ItemResult


_ONE_SCORED = Coverage(items=1, scored=1, unscored=0)

_make_score = maker_of(Score, ("name", "value", "ci_low", "ci_high", "n"))


class OneItemReport:
    """Makes reports of runs with one scored item, equal to those of :meth:`Tally.finish`.

    Arrays of one number take numpy far longer than the numbers take Python, and what such reports
    share is made once (docs/decisions/one-item.md).

    Args:
        metric: The metric.
        intervals: How intervals would be made; one item has none, but its signature names them.
        version: The version of Hallujudge, for the signature.
        settings: The settings behind the signature, in full.
        notes: What limits the use of the scores, whatever the items are.
    """

    def __init__(
        self,
        metric: Metric,
        intervals: IntervalSettings,
        *,
        version: str,
        settings: Mapping[str, str],
        notes: tuple[str, ...] = (),
    ) -> None:
        kind = type(metric)
        plain = kind.derive is Metric.derive and kind.expand is Metric.expand
        self._fits = plain and not metric.repeated_by
        self._metric = metric
        self._settings = settings
        self._notes = notes
        self._names = (metric.unit, *[column.name for column in metric.columns])
        # Without labels, whose sums have no meaning.
        self._summed = [metric.unit, *[one.name for one in metric.columns if not one.label]]
        self._scores = [(score, _function(score)) for score in metric.scores]
        numbers = (("ci", intervals.text), ("n", "1"), ("unscored", "0"))
        self._signature = str(metric.signature.extended(*numbers))
        self._version = version

    def of(self, result: ItemResult | None) -> Report | None:
        """Return the report of a run's only item.

        Args:
            result: The item.

        Returns:
            None if the scores need a table: there is no item, it has no statistics, it has claims
            without a verdict, a judge was called, or the metric makes more columns than an item
            has or counts an item repeatedly.
        """
        if result is None or result.outcome is not Outcome.SCORED or not result.statistics:
            return None
        if not self._fits or hasattr(result.evidence, "judging"):
            return None
        numbers = dict(zip(self._names, map(float, (1, *result.statistics)), strict=True))
        unresolved = self._metric.unresolved
        if unresolved and numbers[unresolved]:
            return None
        data = DataSums()
        data.add((result,))
        return self._report(numbers, data.texts())

    def _report(self, numbers: Mapping[str, float], sums: tuple[str, str]) -> Report:
        fields = (*data_fields(*sums), ("v", self._version))
        metric, totals = self._metric, {name: numbers[name] for name in self._summed}
        scores, items = {}, {}
        for score, value_of in self._scores:
            number = value_of(numbers)
            value = None if math.isnan(number) else number
            if value is not None:  # whether the score depends on the item at all
                items[score.name] = int(any(map(numbers.__getitem__, score.columns)))
            count = int(numbers[score.count or metric.unit])
            scores[score.name] = _make_score((score.name, value, None, None, count))
        return Report(
            metric=metric.name,
            variant=metric.variant,
            signature="|".join([self._signature, *[f"{key}:{value}" for key, value in fields]]),
            scores=scores,
            coverage=_ONE_SCORED,
            totals=totals,
            settings=dict(self._settings),
            item_set=sums[0],
            references=sums[1],
            notes=(*self._notes, *metric.notes_on(totals), *small_sample_notes(items, {})),
        )


def _function(score: ScoreDefinition) -> Callable[[Mapping[str, float]], float]:
    """Return the function from an item's numbers to a score; NaN if the score is undefined."""
    if isinstance(score.value, Ratio):
        return score.value.of

    def value(numbers: Mapping[str, float]) -> float:
        import numpy as np

        columns = {name: np.array([numbers[name]]) for name in score.columns}
        return float(score.value(columns)[0])

    return value
