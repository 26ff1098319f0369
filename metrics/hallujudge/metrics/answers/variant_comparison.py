"""The same answers under every variant of a benchmark."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .answers_metric import AnswersMetric
    from .closed_questions import AnswersItem


class VariantComparison:
    """Scores of the same answers under every variant, added up over batches.

    Args:
        metric: The metric.
    """

    def __init__(self, metric: type[AnswersMetric]) -> None:
        self._rows: dict[AnswersMetric, Counter[tuple[float, ...]]] = {
            metric(variant=variant.name): Counter() for variant in metric.benchmark.variants
        }

    def add(self, items: Sequence[AnswersItem]) -> None:
        """Add bundles whose answers all have a response and a label."""
        for metric, rows in self._rows.items():
            rows.update([metric.score(item).statistics for item in items])

    def scores(self) -> dict[str, dict[str, float | None]]:
        """Return variant -> score -> value; None if it is undefined."""
        return {metric.variant: _scores(metric, rows) for metric, rows in self._rows.items()}


def _scores(
    metric: AnswersMetric, rows: Mapping[tuple[float, ...], int]
) -> dict[str, float | None]:
    import numpy as np

    sums = {name: np.array([total]) for name, total in metric.totals(rows).items()}
    values = {score.name: float(score.value(sums)[0]) for score in metric.scores}
    return {name: None if math.isnan(value) else value for name, value in values.items()}
