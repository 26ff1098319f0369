"""ARGUS: lines of captions -> verdicts and evidence -> the cost of the caption."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import structs
from msgspec.structs import replace

from hallujudge.metrics import ItemResult
from hallujudge.metrics.argus import (
    ACTION,
    ENTAILED,
    MODES,
    VERDICTS,
    ArgusEvidence,
    ArgusItem,
    ArgusMetric,
    JudgedLine,
)
from hallujudge.metrics.argus.caption_lines import is_heading, lines_of
from hallujudge.metrics.framework.results import ScoredItem, UnscoredReason

from ...judges import judging_of, payer_of
from ...judges.choice_judge import ChoiceJudge, Chosen
from ...judges.questions import Question, choice_question
from ...llm.prompt_templates import prompt_option
from ..judge_options import SHARE_OPTION
from ..judge_quality import asked_judge_note, given_verdicts_note
from ..judging_pipeline import choice_judge
from ..pipelines import AskingPipeline, scored_result, unscored_result
from ..registry import MetricEntry, Trial
from ..resources import Resources
from ..responses import Problem, ResponseCheck
from ..spec import ScoreSpec

_SLOTS = ("source", "caption", "line")
# What a judge may answer -> verdict and kind; an action is followed by its source line.
_ANSWERS = {
    **{verdict: (verdict, "") for verdict in VERDICTS[1:]},
    "summary": (ENTAILED, "summary"),
    "description": (ENTAILED, "visual-description"),
}
_ACTION = "action "


class ArgusPipeline(AskingPipeline[ArgusItem, ArgusMetric]):
    """Places the lines of captions, which a language model may judge one by one.

    Args:
        metric: The metric.
        responses: Recognises missing responses.
        judge: The language models, or None if verdicts are given.
        notes: Sentences for the report.
    """

    item_type = ArgusItem
    counts_unread = True

    def __init__(
        self,
        metric: ArgusMetric,
        responses: ResponseCheck,
        judge: ChoiceJudge | None,
        notes: tuple[str, ...],
    ) -> None:
        super().__init__(metric, responses, notes)
        self.judge = judge

    def size(self, item: ArgusItem) -> int:
        """Return the number of characters that scoring an item reads: each line is looked up."""
        return len(item.source or "") * (1 + len(item.lines))

    def problem(self, item: ArgusItem) -> Problem | None:
        """Return why an item can't be scored, or None if it can."""
        if item.mode not in MODES:
            known = " or ".join(MODES)
            return UnscoredReason.PLACE_INVALID, f"the mode is {item.mode!r:.60}, not {known}"
        # Given verdicts need no caption: the script reads the judged lines alone.
        if item.response is None and (self.judge is not None or not item.lines):
            missing = item.problem or "the target caption is null or absent"
            return UnscoredReason.RESPONSE_MISSING, missing
        if not lines_of(item.source or ""):
            return UnscoredReason.REFERENCE_MISSING, "the source caption has no lines"
        if self.judge is None:
            failure = self.responses.failure(item.response, "the target caption")
            return failure or self.metric.problem(item)
        return self.responses.problem(item.response, "the target caption")

    def score(self, item: ArgusItem) -> ScoredItem[ArgusEvidence]:
        """Return the cost of an item without a problem."""
        return self.metric.score(item)

    def unscored(self, item: ArgusItem, reason: UnscoredReason, detail: str) -> ItemResult:
        """Return the result of an item without a cost, whose mode bounds need to know."""
        result = unscored_result(item, reason, detail)
        known = item.mode in MODES
        return (
            structs.replace(result, statistics=self.metric.unscored_row(item)) if known else result
        )

    def unanswered(self, item: ArgusItem, places: Collection[int]) -> ArgusItem:  # noqa: ARG002 - it has one response
        """Return an item without the judged lines of a caption that was cut off."""
        return structs.replace(item, lines=())

    def unread(self, item: ArgusItem) -> Problem:
        """Return why a cost is no number: its limit is 0."""
        cost = self.metric.score(item).evidence.cost
        detail = "the cost and its limit are 0; the released script leaves the clip out"
        if cost:
            detail = f"the cost is {cost:g}, its limit 0; the released mean would be infinite"
        return UnscoredReason.COST_UNDEFINED, detail

    def questions(self, item: ArgusItem) -> dict[int, Question]:
        """Return a question about each line; headings need none."""
        assert self.judge is not None, "only asked then"
        if self.problem(item) is not None:
            return {}
        sources = lines_of(item.source or "")
        numbered = " ".join(f"[{number}] {line}" for number, line in enumerate(sources, 1))
        choices = (*_ANSWERS, *(f"{_ACTION}{number}" for number in range(1, len(sources) + 1)))
        lines = [line for line in lines_of(item.response or "") if not is_heading(line)]
        shared = {"source": numbered, "caption": item.response or ""}
        [template] = self.judge.templates
        asked = [choice_question(template, {**shared, "line": line}, choices) for line in lines]
        named = (replace(q, affinity=item.id, payer=payer_of(item.id, q.messages)) for q in asked)
        return dict(enumerate(named))

    def judged(self, item: ArgusItem, found: Mapping[int, Chosen]) -> ItemResult:
        """Return the result of an item whose lines were judged, in the order of the caption."""
        if (problem := self.problem(item)) is not None:
            return self.unscored(item, *problem)
        answers, sources = iter(found.values()), lines_of(item.source or "")
        lines: list[JudgedLine] = []
        failed: Problem | None = None
        for text in lines_of(item.response or ""):
            if is_heading(text):
                lines.append(JudgedLine(text, "", "summary", ENTAILED))
                continue
            answer = next(answers)
            if not answer.choice and failed is None:
                detail = f"line {len(lines) + 1}: {answer.detail}"
                failed = UnscoredReason(answer.reason), detail
            lines.append(_line(text, answer.choice, sources))
        item = structs.replace(item, lines=tuple(lines))
        judging = judging_of(part for each in found.values() for part in each.asked)
        if failed := failed or self.metric.problem(item):
            evidence = structs.replace(_NOTHING, judging=judging)
            return structs.replace(self.unscored(item, *failed), evidence=evidence)
        made = self.metric.score(item)
        evidence = structs.replace(made.evidence, judging=judging)
        return scored_result(item, made._replace(evidence=evidence))


# Keeps what was asked, and what it cost, of an item without a cost of its own.
_NOTHING = ArgusEvidence(lines=(), sources=0, actions=0, cost=0.0, max_cost=0.0)


def _line(text: str, choice: str, sources: Sequence[str]) -> JudgedLine:
    """Return a line as a judge's choice says; one without a choice is never scored."""
    if choice.startswith(_ACTION):
        place = int(choice.removeprefix(_ACTION)) - 1
        return JudgedLine(text, sources[place], ACTION, ENTAILED)
    verdict, kind = _ANSWERS.get(choice, ("", ""))
    return JudgedLine(text, "", kind, verdict)


def _open(spec: ScoreSpec, resources: Resources) -> ArgusPipeline:
    responses = ResponseCheck(spec.options)
    judge = choice_judge(spec, ENTRY, {"argus": ("prompt",)}, _SLOTS, resources)
    metric = ENTRY.metric_for(spec, responses, judge=judge.signature if judge else "")
    notes = (
        (asked_judge_note(), *judge.notes)
        if judge is not None
        else (given_verdicts_note("Every score rests", "verdicts"),)
    )
    return ArgusPipeline(metric, responses, judge, notes)


_SOURCE = "A man opens a box. Then he takes out a small key."
_TRIAL = ArgusItem(
    id="1/hallucination",
    mode=MODES[0],
    response="A man opens a box. He dances on the table.",
    source=_SOURCE,
    lines=(
        JudgedLine("A man opens a box.", "A man opens a box.", ACTION, ENTAILED),
        JudgedLine("He dances on the table.", "", ACTION, "contradiction"),
    ),
)
ENTRY = MetricEntry(
    metric=ArgusMetric,
    item_type=ArgusItem,
    trial=Trial(item=_TRIAL, score="cost_h", value=1.0),
    engine_options=(SHARE_OPTION, prompt_option("prompt", _SLOTS)),
    open=_open,
)
ENTRIES = (ENTRY,)
