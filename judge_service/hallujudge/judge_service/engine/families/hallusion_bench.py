"""HallusionBench: answer -> right, wrong or unclear, beside the other answers of its set."""

from __future__ import annotations

from dataclasses import replace

from hallujudge.metrics import ItemResult, Outcome
from hallujudge.metrics.framework.reasons import UnscoredReason
from hallujudge.metrics.framework.result import ScoredItem
from hallujudge.metrics.hallusion_bench.evidence import HallusionBenchEvidence
from hallujudge.metrics.hallusion_bench.items import CATEGORIES, HallusionBenchItem
from hallujudge.metrics.hallusion_bench.metric import HallusionBenchMetric

from ..entry import MetricEntry, Trial
from ..pipelines import TextPipeline
from ..resources import Resources
from ..responses import Problem, ResponseCheck
from ..spec import ScoreSpec

__all__ = ["ENTRIES", "HallusionBenchPipeline"]


class HallusionBenchPipeline(TextPipeline[HallusionBenchItem, HallusionBenchMetric]):
    """Parses yes/no answers, or takes the correctness that they came with."""

    item_type = HallusionBenchItem
    response_name = "the answer"

    def result(self, item: HallusionBenchItem) -> ItemResult:
        """Return the result of one answer; one that is not of the variant counts in no score."""
        result = super().result(item)
        placed = replace(
            result,
            group_id=item.group_id or "_".join(self.metric.set_of(item)),
            fields={"category": item.category, "subcategory": item.subcategory} | dict(item.fields),
        )
        if not self.metric.counts(item):
            return ItemResult(
                id=item.id, group_id=placed.group_id, outcome=Outcome.SCORED, fields=placed.fields
            )
        if placed.outcome is Outcome.UNSCORED:
            return replace(placed, statistics=self.metric.unscored_row(item))
        return placed

    def problem(self, item: HallusionBenchItem) -> Problem | None:
        """Return why an answer can't be scored; None: it can."""
        if item.category not in CATEGORIES or item.visual_input not in (0, 1, 2):
            return UnscoredReason.PLACE_INVALID, (
                f"category {item.category!r} and visual_input {item.visual_input}; give VD or VS, "
                "and 0, 1 or 2"
            )
        if self.metric.correctness == "given":
            return _correctness_problem(item)
        if problem := super().problem(item):
            return problem
        if not item.label:
            return UnscoredReason.REFERENCE_MISSING, "no gt_answer for this question"
        if item.label not in ("yes", "no"):
            return UnscoredReason.LABEL_INVALID, f"the label is {item.label!r}; give yes or no"
        return None

    def score(self, item: HallusionBenchItem) -> ScoredItem[HallusionBenchEvidence]:
        """Return the statistics of an answer."""
        return self.metric.score_answer(item)


def _correctness_problem(item: HallusionBenchItem) -> Problem | None:
    if item.correctness in (0, 1, 2):
        return None
    if item.correctness is None:
        return UnscoredReason.VERDICT_NULL, "the answer came without a correctness"
    return (
        UnscoredReason.LABEL_INVALID,
        f"the correctness is {item.correctness}; give 1 (right), 0 (wrong) or 2 (unclear)",
    )


def _notes(metric: HallusionBenchMetric) -> tuple[str, ...]:
    if metric.variant != "image-only":
        return ()
    return (
        "image-only: questions without a figure were read and count in no score; sets of one "
        "subcategory and number are one set, whatever their category, as in VLMEvalKit.",
    )


def _open(spec: ScoreSpec, resources: Resources) -> HallusionBenchPipeline:  # noqa: ARG001
    responses = ResponseCheck(spec.options)
    metric = HallusionBenchMetric(
        variant=spec.variant, responses=responses.signature, **ENTRY.own_options(spec)
    )
    return HallusionBenchPipeline(metric, responses, _notes(metric))


ENTRY = MetricEntry(
    metric=HallusionBenchMetric,
    item_type=HallusionBenchItem,
    trial=Trial(
        item=HallusionBenchItem(
            id="1",
            response="Yes.",
            label="yes",
            category="VD",
            subcategory="illusion",
            set_id="0",
            figure_id="0",
            question_id="0",
            visual_input=1,
        ),
        score="question_accuracy",
        value=1.0,
    ),
    group_by=("category", "subcategory"),
    open=_open,
)
ENTRIES = (ENTRY,)
