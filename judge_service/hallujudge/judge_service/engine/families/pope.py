"""POPE: answer -> yes or no -> held against its label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hallujudge.metrics import Item, ItemResult
from hallujudge.metrics.pope.items import PopeItem
from hallujudge.metrics.pope.metric import PopeMetric

from ..cpu import run_cpu
from ..entry import MetricEntry
from ..items import MAX_RESPONSE_CHARS, checked, scored, unscored
from ..resources import Resources
from ..spec import ScoreSpec

__all__ = ["ENTRY", "PopePipeline"]


class PopePipeline:
    """Reads yes/no answers.

    Args:
        metric: How answers are read.
    """

    notes: tuple[str, ...] = ()

    def __init__(self, metric: PopeMetric) -> None:
        self.metric = metric

    @property
    def settings(self) -> Mapping[str, str]:
        """The parser."""
        return {"parser": self.metric.variant, "max_response_chars": str(MAX_RESPONSE_CHARS)}

    async def evaluate(self, items: Sequence[Item]) -> list[ItemResult]:
        """One result for each of the answers, in order."""
        answers = checked(items, PopeItem)
        return await run_cpu(
            lambda: [self._score(item) for item in answers],
            chars=sum(len(item.response or "") for item in answers),
        )

    def _score(self, item: PopeItem) -> ItemResult:
        if item.response is None:
            return unscored(item, "RESPONSE_MISSING", "the answer is null or absent")
        if len(item.response) > MAX_RESPONSE_CHARS:
            return unscored(
                item, "RESPONSE_TOO_LONG", f"at most {MAX_RESPONSE_CHARS} characters are read"
            )
        if not item.label:
            return unscored(item, "REFERENCE_MISSING", "no label for this question")
        if item.label not in ("yes", "no"):
            return unscored(item, "LABEL_INVALID", f"the label is {item.label!r}; give yes or no")
        result = self.metric.score_answer(item.response, item.label)
        if result.readable:
            return scored(item, result.statistics, result.scores, result.evidence)
        detail = f"{item.response[:80]!r} is neither a clear yes nor a clear no"
        return replace(
            unscored(item, "ANSWER_UNPARSED", detail, result.evidence),
            statistics=result.statistics,
        )


def _open(spec: ScoreSpec, resources: Resources) -> PopePipeline:  # noqa: ARG001
    return PopePipeline(PopeMetric(variant=spec.variant or PopeMetric.variants[0]))


ENTRY = MetricEntry(
    name=PopeMetric.name,
    description="Whether a model says yes to objects that an image lacks (Li et al. 2023).",
    variants=PopeMetric.variants,
    score_names=tuple(score.name for score in PopeMetric.scores),
    item_type=PopeItem,
    group_by=("category",),
    open=_open,
)
