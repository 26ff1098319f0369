"""INFACT: a question's answers under every operator -> right or not -> kept or changed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hallujudge.metrics import Item, ItemResult
from hallujudge.metrics.answers import read_choice
from hallujudge.metrics.infact.items import InfactItem
from hallujudge.metrics.infact.metric import InfactMetric
from hallujudge.metrics.infact.taxonomy import BASE, OPERATORS, level_of

from ..cpu import run_cpu
from ..entry import MetricEntry, OptionEntry
from ..items import MAX_RESPONSE_CHARS, checked, scored, unscored
from ..resources import Resources
from ..spec import ScoreSpec

__all__ = ["ENTRY", "InfactPipeline"]


class InfactPipeline:
    """Reads a question's answers and holds each against the label.

    Args:
        metric: What is counted, and how.
    """

    notes: tuple[str, ...] = ()

    def __init__(self, metric: InfactMetric) -> None:
        self.metric = metric

    @property
    def settings(self) -> Mapping[str, str]:
        """What becomes of unread answers."""
        return {
            "unparsed": self.metric.unparsed,
            "max_response_chars": str(MAX_RESPONSE_CHARS),
        }

    async def evaluate(self, items: Sequence[Item]) -> list[ItemResult]:
        """One result for each of the questions, in order."""
        questions = checked(items, InfactItem)
        return await run_cpu(
            lambda: [self._score(item) for item in questions],
            chars=sum(len(run.response or "") for item in questions for run in item.runs.values()),
        )

    def _score(self, item: InfactItem) -> ItemResult:
        return replace(self._result(item), fields=_fields(item))

    def _result(self, item: InfactItem) -> ItemResult:
        problem = _problem(item)
        if problem is not None:
            return unscored(item, *problem)
        result = self.metric.score_question(item)
        if result.readable:
            return scored(item, result.statistics, result.scores, result.evidence)
        detail = f"the base answer {(item.runs[BASE].response or '')[:80]!r} can't be read"
        return replace(
            unscored(item, "BASE_UNPARSED", detail, result.evidence), statistics=result.statistics
        )


def _fields(item: InfactItem) -> Mapping[str, str]:
    """The question's place in the taxonomy, to group by, beside the item's own fields."""
    own = {
        "dimension": item.dimension,
        "level": level_of(item.category),
        "category": item.category,
        "order_sensitive": "true" if item.order_sensitive else "false",
    }
    return {name: value for name, value in own.items() if value} | dict(item.fields)


def _problem(item: InfactItem) -> tuple[str, str] | None:
    """Why a question can't be scored: a reason and its words."""
    unknown = sorted(set(item.runs) - set(OPERATORS))
    if unknown:
        known = ", ".join(OPERATORS)
        return "OPERATOR_UNKNOWN", f"{', '.join(map(repr, unknown))}; operators are {known}"
    if BASE not in item.runs:
        return "BASE_MISSING", "there is no base run, which every rate is held against"
    if item.runs[BASE].response is None:
        return "RESPONSE_MISSING", "the base answer is null or absent"
    if not item.label.strip():
        return "LABEL_INVALID", "the label is empty"
    if item.options and read_choice(item.label, item.options).choice is None:
        known = ", ".join(sorted(item.options))
        return "LABEL_INVALID", f"the label {item.label[:80]!r} is none of the options {known}"
    for operator, run in sorted(item.runs.items()):
        if run.response is not None and len(run.response) > MAX_RESPONSE_CHARS:
            return "RESPONSE_TOO_LONG", f"{operator}: at most {MAX_RESPONSE_CHARS} are read"
        if run.confidence is not None and not _is_share(run.confidence):
            return (
                "CONFIDENCE_INVALID",
                f"{operator}: the confidence is {run.confidence}; give a number from 0 to 1",
            )
    return None


def _is_share(number: float) -> bool:
    return math.isfinite(number) and 0 <= number <= 1


def _open(spec: ScoreSpec, resources: Resources) -> InfactPipeline:  # noqa: ARG001
    metric = InfactMetric(
        variant=spec.variant or InfactMetric.variants[0],
        unparsed=spec.options.get("unparsed", InfactMetric.unparsed_choices[0]),
    )
    return InfactPipeline(metric)


ENTRY = MetricEntry(
    name=InfactMetric.name,
    description="Whether right answers survive bad video, false captions and no order (2026).",
    variants=InfactMetric.variants,
    score_names=tuple(score.name for score in InfactMetric.scores),
    item_type=InfactItem,
    group_by=("dimension", "level", "category"),
    options=(
        OptionEntry(
            name="unparsed",
            default=InfactMetric.unparsed_choices[0],
            choices=InfactMetric.unparsed_choices,
            description="what an answer that can't be read is: unscored, or a wrong answer",
        ),
    ),
    open=_open,
)
