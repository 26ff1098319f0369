"""What is known of a metric before there are numbers, so that short reports need not ask again."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from .base import MetricBase
from .metric import Ratio, is_expanding, is_resolving

if TYPE_CHECKING:
    from .metric import Metric, ScoreDefinition
    from .signature import Signature

__all__ = ["MetricFacts", "ScoreFacts", "facts_of"]

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
    """The column that counts claims without a verdict; empty: there is none."""
    scores: tuple[ScoreFacts, ...]
    """Its scores."""


def facts_of(metric: Metric) -> MetricFacts:
    """Return what is known of a metric, from the last metrics if it is there."""
    return _facts(metric)  # type: ignore[arg-type]  # metrics are frozen values


@lru_cache(_KEPT)
def _facts(metric: Metric) -> MetricFacts:
    return MetricFacts(
        signature=metric.signature,
        plain=getattr(type(metric), "derive", None) is MetricBase.derive
        and not is_expanding(metric),
        names=(metric.unit, *(column.name for column in metric.columns)),
        labels=tuple(column.name for column in metric.columns if column.label),
        unresolved=metric.unresolved if is_resolving(metric) else "",
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
