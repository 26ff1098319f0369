"""EventHallusion: answers and given judgements -> yes or no -> comparison with the labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hallujudge.metrics import ItemResult, Outcome
from hallujudge.metrics.event_hallusion import (
    SPLITS,
    EventHallusionEvidence,
    EventHallusionItem,
    EventHallusionMetric,
    EventQuestion,
    parse_judgement,
)
from hallujudge.metrics.framework.reasons import UnscoredReason
from hallujudge.metrics.framework.results import ScoredItem

from ..judge_options import ESCALATION_OPTIONS
from ..judge_quality import CARD_OPTION, asked_judge_note, card_of, given_verdicts_note
from ..judging_pipeline import JudgingPipeline, choice_judge, choice_question, prompt_option
from ..pipelines import scored_result
from ..registry import MetricEntry, Trial
from ..resources import Resources
from ..responses import Problem, ResponseCheck
from ..spec import ScoreSpec

if TYPE_CHECKING:
    from ...judges.choice_judge import Chosen
    from ...judges.judge_prompts import Question


_DESCRIBED = "Scores of descriptions rest"
_SLOTS = ("event", "description")


class EventHallusionPipeline(JudgingPipeline[EventHallusionItem, EventHallusionMetric]):
    """Parses a video's answers and its judgement, or has the description judged."""

    item_type = EventHallusionItem
    counts_unread = True

    def size(self, item: EventHallusionItem) -> int:
        """Return the number of characters that scoring an item reads."""
        return sum(len(text) for text in self.texts(item) if text)

    def texts(self, item: EventHallusionItem) -> Sequence[str | None]:
        """Return the model's answers, and the judgement or the text of its description."""
        last = item.judgement if self.judge is None else item.response
        return [*(question.response for question in item.questions), last]

    def placed(self, item: EventHallusionItem, result: ItemResult) -> ItemResult:
        """Return the result of one video, with its split among the fields."""
        fields = {"split": item.split, **item.fields} if item.split else item.fields
        return replace(result, fields=fields)

    def question(self, item: EventHallusionItem) -> Question | None:
        """Return the question about a description, or None if there is none, or it failed."""
        assert self.judge is not None, "only asked then"
        if self.problem(item) is not None or self.responses.problem(item.response) is not None:
            return None
        template = self.judge.templates[SPLITS.index(item.split)]
        values = {"event": item.event, "description": item.response or ""}
        return choice_question(template, values, ("yes", "no"))

    def judged(self, item: EventHallusionItem, chosen: Chosen | None) -> ItemResult:
        """Return the result of a video with the judge's choice as its judgement.

        The judgement of a description without a choice is empty. In ``published`` such a failed
        judgement counts as wrong, but one with a small margin is missing.
        """
        choice: str | None = chosen.choice if chosen is not None else ""
        if item.response is None or (self.metric.variant == "published" and _is_left(chosen)):
            choice = None
        judged = replace(item, judgement=choice)
        if chosen is None:
            return self.result(judged)
        # The first choice is yes: the description is right.
        probability = chosen.probabilities[0] if chosen.probabilities else None
        made = self.score(judged, probability)
        if made.readable:
            result = scored_result(judged, made.statistics, made.scores, made.evidence)
        else:
            result = self.unread_result(judged, made)
        result = self.placed(item, result)
        if result.outcome is Outcome.UNSCORED and not choice:
            result = replace(result, reason=UnscoredReason(chosen.reason), detail=chosen.detail)
        assert isinstance(result.evidence, EventHallusionEvidence), "every judged video has it"
        return replace(
            result,
            evidence=replace(
                result.evidence,
                given=parse_judgement(item.judgement, self.metric.variant),
                margin=chosen.margin,
                probability=probability,
                judging=chosen.judging(),
            ),
        )

    def problem(self, item: EventHallusionItem) -> Problem | None:
        """Return why a video can't be scored, or None if it can."""
        if self.judge is not None:
            if problem := _event_problem(item):
                return problem
        elif not item.questions and item.judgement is None:
            return UnscoredReason.REFERENCE_MISSING, "it has neither a question nor a judgement"
        for question in item.questions:
            if question.label not in ("yes", "no"):
                shown = question.label[:80]
                return UnscoredReason.LABEL_INVALID, f"the label is {shown!r}; give yes or no"
        return None

    def score(
        self, item: EventHallusionItem, probability: float | None = None
    ) -> ScoredItem[EventHallusionEvidence]:
        """Return the statistics of a video; in ``corrected`` without its failed responses.

        Args:
            item: The video.
            probability: Probability that its description is right, if the judge reports one.
        """
        if self.metric.variant == "corrected":
            item = replace(item, questions=tuple(map(self._without_failed, item.questions)))
        return self.metric.score_video(item, probability)

    def _without_failed(self, question: EventQuestion) -> EventQuestion:
        failed = self.responses.problem(question.response) is not None
        return replace(question, response=None) if failed else question

    def unread(self, item: EventHallusionItem) -> Problem:
        """Return why a video without a parsed answer or judgement is unscored."""
        shown = next((text[:80] for text in self.texts(item) if text), "")
        return UnscoredReason.ANSWER_UNPARSED, f"no answer or judgement can be parsed: {shown!r}"


def _is_left(chosen: Chosen | None) -> bool:
    """Return whether the judge's margin was too small, and no other judge decided."""
    return chosen is not None and chosen.reason == UnscoredReason.MARGIN_TOO_SMALL


def _event_problem(item: EventHallusionItem) -> Problem | None:
    """Return why a judge can't be asked about a video, or None if it can or need not be."""
    if item.response is None:
        return (
            None
            if item.questions
            else (UnscoredReason.REFERENCE_MISSING, "it has neither a question nor a description")
        )
    if item.split not in SPLITS:
        return UnscoredReason.PLACE_INVALID, (
            f"the split is {item.split!r:.60}, which has no prompt; give {', '.join(SPLITS)}"
        )
    if not item.event.strip():
        return UnscoredReason.REFERENCE_MISSING, (
            "what happens in the video is not known; give 'event_info', or 'event'"
        )
    return None


def _open(spec: ScoreSpec, resources: Resources) -> EventHallusionPipeline:
    responses = ResponseCheck(spec.options)
    prompts = {f"event_hallusion_{split}": (f"prompt_{split}", "prompt") for split in SPLITS}
    judge = choice_judge(spec, ENTRY, prompts, _SLOTS, resources)
    card = card_of(spec, judge.signatures) if judge else None
    metric = EventHallusionMetric(
        variant=spec.variant,
        responses=responses.signature,
        judge=judge.signature + (card.mark if card else "") if judge else "",
        **ENTRY.own_options(spec),
    )
    if judge is None:
        notes: tuple[str, ...] = (given_verdicts_note(_DESCRIBED, "judgements"),)
    else:
        known = card.note if card else asked_judge_note()
        notes = (known, *judge.notes)
    return EventHallusionPipeline(metric, responses, judge, notes)


ENTRY = MetricEntry(
    metric=EventHallusionMetric,
    item_type=EventHallusionItem,
    trial=Trial(
        item=EventHallusionItem(
            id="1",
            split="entire",
            questions=(EventQuestion(label="no", response="No."),),
            judgement="Yes.",
        ),
        score="question_accuracy",
        value=1.0,
    ),
    judge_trial=Trial(
        item=EventHallusionItem(
            id="1",
            split="entire",
            response="A brown dog runs across a meadow.",
            event="A dog runs across a meadow.",
        ),
        score="description_accuracy",
        value=1.0,
    ),
    engine_options=(
        *ESCALATION_OPTIONS,
        CARD_OPTION,
        prompt_option("prompt", _SLOTS, " for all splits"),
        *(prompt_option(f"prompt_{split}", _SLOTS, f" for {split}") for split in SPLITS),
    ),
    judge_option="judgements",
    group_by=("split",),
    open=_open,
)
ENTRIES = (ENTRY,)
"""The metrics of the family."""
