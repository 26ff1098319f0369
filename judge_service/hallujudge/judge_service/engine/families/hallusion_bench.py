"""HallusionBench: answer -> right, wrong or unclear -> comparison within its set."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hallujudge.metrics import ItemResult, Outcome
from hallujudge.metrics.answers.closed_questions import AnswersEvidence, AnswersItem
from hallujudge.metrics.framework.reasons import UnscoredReason
from hallujudge.metrics.framework.results import ScoredItem
from hallujudge.metrics.hallusion_bench import (
    BENCHMARK,
    JUDGES,
    HallusionBenchAnswers,
    HallusionBenchMetric,
    without_figure,
)

from ..answers_pipeline import ONE_EACH
from ..judge_quality import asked_judge_note, given_verdicts_note
from ..judging_pipeline import JudgingPipeline, choice_judge, choice_question, prompt_option
from ..registry import MetricEntry, Trial
from ..resources import Resources
from ..responses import Problem, ResponseCheck
from ..spec import ScoreSpec

if TYPE_CHECKING:
    from ...judges.choice_judge import Chosen
    from ...judges.judge_prompts import Question


_CHOICES = {"correct": "right", "incorrect": "wrong", "unclear": "unclear"}
_DIGITS = 6  # as judges round probabilities
_SLOTS = ("question", "reference", "prediction")


class HallusionBenchPipeline(JudgingPipeline[AnswersItem, HallusionBenchAnswers]):
    """Parses yes/no answers, uses the given correctness, or asks a judge."""

    item_type = AnswersItem
    response_name = "the answer"

    def result(self, item: AnswersItem) -> ItemResult:
        """Return the result of one answer; one that is not of the variant counts in no score."""
        return super().result(item) if self._counts(item) else self._uncounted(item)

    def _counts(self, item: AnswersItem) -> bool:
        """Return whether the variant counts a question."""
        shown = [each.fields.get("visual_input") for each in item.answers]
        return self.metric.variant != "image-only" or shown != ["0"]

    def question(self, item: AnswersItem) -> Question | None:
        """Return the question about an answer, if it has a response and counts."""
        assert self.judge is not None, "only asked then"
        if not self._counts(item) or self.problem(item) is not None:
            return None
        [answer] = item.answers
        about = answer.fields.get("reference") or answer.label
        values = dict(zip(_SLOTS, (answer.question, about, answer.response or ""), strict=True))
        return choice_question(self.judge.templates[0], values, tuple(_CHOICES))

    def judged(self, item: AnswersItem, chosen: Chosen | None) -> ItemResult:
        """Return the result of an answer with the judge's choice; without one it is unscored."""
        if chosen is None:
            return self.result(item)
        if not chosen.choice:
            return self.unscored(item, UnscoredReason(chosen.reason), chosen.detail)
        [answer] = item.answers
        fields = {**answer.fields, "verdict": _CHOICES[chosen.choice]}
        judged = replace(item, answers=(answer._replace(fields=fields),))
        made = self.score(judged, _right(judged, chosen))
        evidence = replace(made.evidence, margin=chosen.margin, judging=chosen.judging())
        return self.made_result(item, made._replace(evidence=evidence))

    def placed(self, item: AnswersItem, result: ItemResult) -> ItemResult:
        """Return the result with its set and fields; an unscored one keeps its pair open."""
        statistics = result.statistics
        if result.outcome is Outcome.UNSCORED:
            statistics = self.metric.unscored_row(item)
        answer = item.answers[0] if item.answers else BENCHMARK.trial.answers[0]
        own = {name: answer.fields.get(name, "") for name in BENCHMARK.group_by}
        group = item.group_id or "_".join(self.metric.set_of(answer))
        return replace(
            result, group_id=group, fields=own | dict(item.fields), statistics=statistics
        )

    def _uncounted(self, item: AnswersItem) -> ItemResult:
        """Return the result of a question that is not of the variant: it counts in no score."""
        return self.placed(item, ItemResult(id=item.id, group_id="", outcome=Outcome.SCORED))

    def problem(self, item: AnswersItem) -> Problem | None:
        """Return why an answer can't be scored, or None if it can."""
        if len(item.answers) != 1:
            return ONE_EACH
        [answer] = item.answers
        for name, allowed in BENCHMARK.places.items():
            if (value := answer.fields.get(name, "")) not in allowed:
                known = ", ".join(filter(None, allowed))
                return UnscoredReason.PLACE_INVALID, f"{name} is {value!r}; give {known}"
        if self.metric.correctness == "given":
            missing = UnscoredReason.VERDICT_NULL, "the answer came without a correctness"
            return None if answer.fields.get("correctness") else missing
        if problem := super().problem(item):
            return problem
        if not answer.label:
            asked = answer.fields.get("reference") and self.metric.correctness in JUDGES
            missing = UnscoredReason.REFERENCE_MISSING, "no gt_answer for this question"
            return None if asked else missing
        if answer.label not in BENCHMARK.labels:
            return UnscoredReason.LABEL_INVALID, f"the label is {answer.label!r}; give yes or no"
        return None

    def score(
        self, item: AnswersItem, probability: float | None = None
    ) -> ScoredItem[AnswersEvidence]:
        """Return the statistics of an answer.

        Args:
            item: The answer.
            probability: Probability that it counts as right, if the judge states one.
        """
        made = self.metric.score_judged(item, probability)
        given = item.answers[0].fields.get("correctness")
        if not given or self.metric.correctness == "given":
            return made
        return made._replace(evidence=replace(made.evidence, given=given))


def _right(item: AnswersItem, chosen: Chosen) -> float | None:
    """Return the probability that an answer counts as right: without a figure unclear ones do."""
    if chosen.probabilities is None:
        return None
    stated = dict(zip(_CHOICES, chosen.probabilities, strict=True))
    if without_figure(item.answers[0].fields.get):
        return round(1.0 - stated["incorrect"], _DIGITS)
    return stated["correct"]


def _notes(metric: HallusionBenchAnswers) -> tuple[str, ...]:
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


_TRIAL = Trial(item=BENCHMARK.trial, score=BENCHMARK.main_score, value=1.0)
ENTRY = MetricEntry(
    metric=HallusionBenchMetric,
    item_type=AnswersItem,
    trial=_TRIAL,
    judge_trial=_TRIAL,
    engine_options=(prompt_option("prompt", _SLOTS),),
    judge_option="correctness",
    group_by=BENCHMARK.group_by,
    open=_open,
)
ENTRIES = (ENTRY,)
"""The metrics of the family."""
