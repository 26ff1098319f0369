"""HallusionBench: answer -> right, wrong or unclear -> comparison within its set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from hallujudge.metrics import ItemResult, Outcome
from hallujudge.metrics.framework.reasons import UnscoredReason
from hallujudge.metrics.framework.results import ScoredItem
from hallujudge.metrics.hallusion_bench import JUDGES, HallusionBenchEvidence, HallusionBenchMetric
from hallujudge.metrics.hallusion_bench.question_groups import (
    CATEGORIES,
    RIGHT,
    UNCLEAR,
    WRONG,
    HallusionBenchItem,
)

from ..judge_quality import asked_judge_note, given_verdicts_note
from ..judging_pipeline import JudgingPipeline, choice_judge, choice_question, prompt_option
from ..pipelines import scored_result
from ..registry import MetricEntry, Trial
from ..resources import Resources
from ..responses import Problem, ResponseCheck
from ..spec import ScoreSpec

if TYPE_CHECKING:
    from ...judges.choice_judge import Chosen
    from ...judges.judge_prompts import Question


_CHOICES = {"correct": RIGHT, "incorrect": WRONG, "unclear": UNCLEAR}
_DIGITS = 6  # as judges round probabilities
_SLOTS = ("question", "reference", "prediction")


class HallusionBenchPipeline(JudgingPipeline[HallusionBenchItem, HallusionBenchMetric]):
    """Parses yes/no answers, uses the given correctness, or asks a judge."""

    item_type = HallusionBenchItem
    response_name = "the answer"

    def result(self, item: HallusionBenchItem) -> ItemResult:
        """Return the result of one answer; one that is not of the variant counts in no score."""
        if not self.metric.counts(item):
            return self._uncounted(item)
        return super().result(item)

    def question(self, item: HallusionBenchItem) -> Question | None:
        """Return the question about an answer, if it has a response and counts."""
        assert self.judge is not None, "only asked then"
        if not self.metric.counts(item) or self.problem(item) is not None:
            return None
        texts = (item.question, item.details or item.label, item.response or "")
        values = dict(zip(_SLOTS, texts, strict=True))
        return choice_question(self.judge.templates[0], values, tuple(_CHOICES))

    def judged(self, item: HallusionBenchItem, chosen: Chosen | None) -> ItemResult:
        """Return the result of an answer with the judge's choice; without one it is unscored."""
        if not self.metric.counts(item):
            return self._uncounted(item)
        if problem := self.problem(item):
            return self.unscored(item, *problem)
        assert chosen is not None, "asked about every other answer"
        if not chosen.choice:
            return self.unscored(item, UnscoredReason(chosen.reason), chosen.detail)
        right = _right(item, chosen)
        made = self.metric.score_answer(item, _CHOICES[chosen.choice], right)
        evidence = replace(made.evidence, margin=chosen.margin, judging=chosen.judging())
        return self.placed(item, scored_result(item, made.statistics, made.scores, evidence))

    def placed(self, item: HallusionBenchItem, result: ItemResult) -> ItemResult:
        """Return the result with its set and fields; an unscored one keeps its pair open."""
        statistics = result.statistics
        if result.outcome is Outcome.UNSCORED:
            statistics = self.metric.unscored_row(item)
        group, fields = self._place(item)
        return replace(result, group_id=group, fields=fields, statistics=statistics)

    def _uncounted(self, item: HallusionBenchItem) -> ItemResult:
        """Return the result of a question that is not of the variant: it counts in no score."""
        group, fields = self._place(item)
        return ItemResult(id=item.id, group_id=group, outcome=Outcome.SCORED, fields=fields)

    def _place(self, item: HallusionBenchItem) -> tuple[str, Mapping[str, str]]:
        own = {"category": item.category, "subcategory": item.subcategory}
        return item.group_id or "_".join(self.metric.set_of(item)), own | dict(item.fields)

    def problem(self, item: HallusionBenchItem) -> Problem | None:
        """Return why an answer can't be scored, or None if it can."""
        if item.category not in CATEGORIES or item.visual_input not in (0, 1, 2):
            return UnscoredReason.PLACE_INVALID, (
                f"category {item.category!r} and visual_input {item.visual_input}; give VD or VS, "
                "and 0, 1 or 2"
            )
        if self.metric.correctness == "given":
            return _correctness_problem(item)
        if problem := super().problem(item):
            return problem
        if not item.label and item.details and self.metric.correctness in JUDGES:
            return None
        if not item.label:
            return UnscoredReason.REFERENCE_MISSING, "no gt_answer for this question"
        if item.label not in ("yes", "no"):
            return UnscoredReason.LABEL_INVALID, f"the label is {item.label!r}; give yes or no"
        return None

    def score(self, item: HallusionBenchItem) -> ScoredItem[HallusionBenchEvidence]:
        """Return the statistics of an answer."""
        return self.metric.score_answer(item)


def _right(item: HallusionBenchItem, chosen: Chosen) -> float | None:
    """Return the probability that an answer counts as right: without a figure unclear ones do."""
    if chosen.probabilities is None:
        return None
    stated = dict(zip(_CHOICES, chosen.probabilities, strict=True))
    return round(1.0 - stated["incorrect"], _DIGITS) if item.without_figure else stated["correct"]


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
    judged: tuple[str, ...] = ()
    if metric.correctness == "given":
        judged = (given_verdicts_note("Every score rests", "correctness labels"),)
    elif metric.correctness in JUDGES:
        judged = (asked_judge_note(),)
    if metric.variant != "image-only":
        return judged
    return (
        *judged,
        "image-only: questions without a figure were read and count in no score; sets of one "
        "subcategory and number are one set, whatever their category, as in VLMEvalKit.",
    )


def _open(spec: ScoreSpec, resources: Resources) -> HallusionBenchPipeline:
    responses = ResponseCheck(spec.options)
    judge = choice_judge(spec, ENTRY, {"hallusion_bench": ("prompt",)}, _SLOTS, resources)
    metric = HallusionBenchMetric(
        variant=spec.variant,
        responses=responses.signature,
        judge=judge.signature if judge else "",
        **ENTRY.own_options(spec),
    )
    return HallusionBenchPipeline(metric, responses, judge, _notes(metric))


_TRIAL = Trial(
    item=HallusionBenchItem(
        id="1",
        question="Is the line on the left longer?",
        response="Yes.",
        label="yes",
        details="The line on the left is longer.",
        category="VD",
        subcategory="illusion",
        set_id="0",
        figure_id="0",
        question_id="0",
        visual_input=1,
    ),
    score="question_accuracy",
    value=1.0,
)
ENTRY = MetricEntry(
    metric=HallusionBenchMetric,
    item_type=HallusionBenchItem,
    trial=_TRIAL,
    judge_trial=_TRIAL,
    engine_options=(prompt_option("prompt", _SLOTS),),
    judge_option="correctness",
    group_by=("category", "subcategory"),
    open=_open,
)
ENTRIES = (ENTRY,)
