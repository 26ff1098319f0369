"""EventHallusion: parsed answers, and descriptions with given judgements or those of a judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hallujudge.metrics import ItemResult, Outcome
from hallujudge.metrics.answers.answers_metric import AnswersMetric
from hallujudge.metrics.answers.closed_questions import Answer, AnswersEvidence, AnswersItem
from hallujudge.metrics.event_hallusion import (
    BENCHMARK,
    DESCRIPTION,
    SPLITS,
    EventHallusionMetric,
    description_of,
    parse_judgement,
)
from hallujudge.metrics.framework.reasons import UnscoredReason
from hallujudge.metrics.framework.results import ScoredItem

from ..judge_options import ESCALATION_OPTIONS
from ..judge_quality import CARD_OPTION, asked_judge_note, card_of, given_verdicts_note
from ..judging_pipeline import JudgingPipeline, choice_judge, choice_question, prompt_option
from ..registry import MetricEntry, Trial
from ..resources import Resources
from ..responses import Problem, ResponseCheck
from ..spec import ScoreSpec

if TYPE_CHECKING:
    from ...judges.choice_judge import Chosen
    from ...judges.judge_prompts import Question

_SLOTS = ("event", "description")


class EventHallusionPipeline(JudgingPipeline[AnswersItem, AnswersMetric]):
    """Parses a video's answers and its judgement, or has the description judged."""

    item_type = AnswersItem
    counts_unread = True

    def size(self, item: AnswersItem) -> int:
        """Return the number of characters that scoring an item reads."""
        return sum(map(len, filter(None, self._texts(item))))

    def _texts(self, item: AnswersItem) -> Sequence[str | None]:
        """Return the model's answers, and the judgement or the text of its description."""
        given = self.judge is None
        return [
            each.fields.get("judgement") if each.name == DESCRIPTION and given else each.response
            for each in item.answers
        ]

    def question(self, item: AnswersItem) -> Question | None:
        """Return the question about a description, or None if there is none, or it failed."""
        assert self.judge is not None, "only asked then"
        described = description_of(item)
        if self.problem(item) is not None or self.responses.problem(described.response) is not None:
            return None
        template = self.judge.templates[SPLITS.index(item.fields["split"])]
        texts = (described.fields.get("reference", ""), described.response or "")
        return choice_question(template, dict(zip(_SLOTS, texts, strict=True)), ("yes", "no"))

    def judged(self, item: AnswersItem, chosen: Chosen | None) -> ItemResult:
        """Return the result of a video with the judge's choice as its judgement.

        The judgement of a description without a choice is empty. In ``published`` such a failed
        judgement counts as wrong, but one with a small margin is missing.
        """
        choice: str | None = chosen.choice if chosen is not None else ""
        described = description_of(item)
        if described.response is None or (self.metric.variant == "published" and _is_left(chosen)):
            choice = None
        judged = _with_judgement(item, choice)
        if chosen is None:
            return self.result(judged)
        # The first choice is yes: the description is right.
        made = self.score(judged, chosen.probabilities[0] if chosen.probabilities else None)
        given = parse_judgement(described.fields.get("judgement"), self.metric.variant)
        evidence = replace(
            made.evidence, given=given, margin=chosen.margin, judging=chosen.judging()
        )
        result = self.made_result(judged, made._replace(evidence=evidence))
        if result.outcome is Outcome.UNSCORED and not choice:
            return replace(result, reason=UnscoredReason(chosen.reason), detail=chosen.detail)
        return result

    def problem(self, item: AnswersItem) -> Problem | None:
        """Return why a video can't be scored, or None if it can."""
        described = description_of(item)
        asked = [each for each in item.answers if each.name != DESCRIPTION]
        missing = described.response is None
        if self.judge is not None and not missing:
            if item.fields.get("split") not in SPLITS:
                return UnscoredReason.PLACE_INVALID, (
                    f"the split is {item.fields.get('split', '')!r:.60}, which has no prompt; give "
                    f"{', '.join(SPLITS)}"
                )
            if not described.fields.get("reference", "").strip():
                return UnscoredReason.REFERENCE_MISSING, (
                    "what happens in the video is not known; give 'event_info', or 'event'"
                )
        elif not asked and (self.judge is not None or "judgement" not in described.fields):
            what = "description" if self.judge is not None else "judgement"
            return UnscoredReason.REFERENCE_MISSING, f"it has neither a question nor a {what}"
        for each in asked:
            if each.label not in BENCHMARK.labels:
                shown = each.label[:80]
                return UnscoredReason.LABEL_INVALID, f"the label is {shown!r}; give yes or no"
        return None

    def score(
        self, item: AnswersItem, probability: float | None = None
    ) -> ScoredItem[AnswersEvidence]:
        """Return the statistics of a video; in ``corrected`` without its failed responses.

        Args:
            item: The video.
            probability: Probability that its description is right, if the judge reports one.
        """
        answers = [
            each
            for each in map(self._counted, item.answers)
            if each.name != DESCRIPTION or "judgement" in each.fields
        ]
        return self.metric.score_judged(replace(item, answers=tuple(answers)), probability)

    def _counted(self, answer: Answer) -> Answer:
        if self.metric.variant == "corrected" and answer.name != DESCRIPTION:
            failed = self.responses.problem(answer.response) is not None
            return answer._replace(response=None) if failed else answer
        return answer

    def unread(self, item: AnswersItem) -> Problem:
        """Return why a video without a parsed answer or judgement is unscored."""
        shown = next((text[:80] for text in self._texts(item) if text), "")
        return UnscoredReason.ANSWER_UNPARSED, f"no answer or judgement can be parsed: {shown!r}"


def _with_judgement(item: AnswersItem, choice: str | None) -> AnswersItem:
    """Return a video with another judgement of its description; None for none."""
    described = description_of(item)
    fields = {name: text for name, text in described.fields.items() if name != "judgement"}
    if choice is not None:
        fields["judgement"] = choice
    others = [each for each in item.answers if each.name != DESCRIPTION]
    return replace(item, answers=(*others, described._replace(fields=fields)))


def _is_left(chosen: Chosen | None) -> bool:
    """Return whether the judge's margin was too small, and no other judge decided."""
    return chosen is not None and chosen.reason == UnscoredReason.MARGIN_TOO_SMALL


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
        notes: tuple[str, ...] = (given_verdicts_note("Scores of descriptions rest", "judgements"),)
    else:
        notes = (card.note if card else asked_judge_note(), *judge.notes)
    return EventHallusionPipeline(metric, responses, judge, notes)


ENTRY = MetricEntry(
    metric=EventHallusionMetric,
    item_type=AnswersItem,
    trial=Trial(item=BENCHMARK.trial, score=BENCHMARK.main_score, value=1.0),
    judge_trial=Trial(item=BENCHMARK.trial, score="description_accuracy", value=1.0),
    engine_options=(
        *ESCALATION_OPTIONS,
        CARD_OPTION,
        prompt_option("prompt", _SLOTS, " for all splits"),
        *(prompt_option(f"prompt_{split}", _SLOTS, f" for {split}") for split in SPLITS),
    ),
    judge_option="judgements",
    group_by=BENCHMARK.group_by,
    open=_open,
)
ENTRIES = (ENTRY,)
"""The metrics of the family."""
