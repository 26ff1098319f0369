"""EventHallusion: questions about events in videos, and judged descriptions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from .answers.yes_no import YES_NO_PARSERS, YesNo
from .framework.columns_and_scores import Column, JudgedColumn, ScoreDefinition, share
from .framework.metric import OptionDefinition, Paper, SoftMetric, VariantDefinition, soft_option
from .framework.results import CanonicalRecord, Item, JsonValue, ScoredItem

if TYPE_CHECKING:
    from .framework.columns_and_scores import FloatArray


SPLITS = ("entire", "interleave", "misleading")
"""The splits of the benchmark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventQuestion:
    """A yes/no question about a video, its label and the answer."""

    question: str = ""
    """The question."""
    label: str
    """The right answer: ``yes`` or ``no``."""
    response: str | None
    """What the model wrote; None without a response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventHallusionItem(Item):
    """A video with its questions, the model's description and a judge's reply about it."""

    split: str
    """One of :data:`SPLITS`."""
    questions: tuple[EventQuestion, ...] = ()
    """The questions about the video."""
    response: str | None = None
    """The model's description of the video; None without one."""
    judgement: str | None = None
    """The judge's reply about the description, which starts with yes or no. Empty if the judge
    failed; None without a judge."""
    event: str = ""
    """What happens in the video, with which our judge compares the description: in the split
    ``interleave`` the unexpected event."""

    def question_record(self) -> CanonicalRecord:
        """Return the questions."""
        return [each.question for each in self.questions if each.question]

    def reference_record(self) -> CanonicalRecord:
        """Return the labels of the questions, the split and the event."""
        return [each.label for each in self.questions], self.split, self.event


class EventVerdict(NamedTuple):
    """The outcome of one question."""

    question: str
    """The question."""
    label: str
    """The right answer."""
    answer: str | None
    """The parsed answer, ``yes`` or ``no``; None for an unparsed response."""
    correct: bool | None
    """Whether the answer counts as right; None if it does not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventHallusionEvidence:
    """Evidence of a video's scores."""

    answers: tuple[EventVerdict, ...]
    """One verdict for each question."""
    judgement: str | None
    """The parsed judgement, ``yes`` or ``no``; None if it is missing or unparsed."""
    description_correct: bool | None
    """Whether the description counts as right; None if it does not count."""
    given: str | None = None
    """The parsed judgement that came with the video, where another judge was asked."""
    margin: float | None = None
    """The judge's log-probability of its choice minus that of the runner-up."""
    probability: float | None = None
    """The judge's probability that the description is right."""
    judging: tuple[dict[str, JsonValue], ...] = field(default=())
    """The judges that were called, in order. Empty if none was."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return each question's outcome, the description's, and the judges that were called."""
        line: dict[str, JsonValue] = {
            "answers": [dict(verdict._asdict()) for verdict in self.answers],
            "judgement": self.judgement,
            "description_correct": self.description_correct,
        }
        if self.judging:
            line |= {
                "given": self.given,
                "margin": self.margin,
                "probability": self.probability,
                "judging": list(self.judging),
            }
        return line


_FIRST_WORD = re.compile(r"[^\w]*(yes|no)\b", re.IGNORECASE)


def parse_answer(text: str | None, variant: str) -> YesNo | None:
    """Return ``yes`` or ``no``; None if the answer can't be parsed.

    Args:
        text: The answer.
        variant: ``published``: its first letters are yes or no. ``corrected``: its first word is,
            or it is a clear yes or no by the parser ``strict``.
    """
    if text is None:
        return None
    if variant == "published":
        return _first_letters(text)
    return _first_word(text) or YES_NO_PARSERS["strict"](text)


def parse_judgement(text: str | None, variant: str) -> YesNo | None:
    """Return ``yes`` or ``no``; None if the reply can't be parsed.

    Args:
        text: The reply.
        variant: ``published``: its first letters without asterisks are yes or no. ``corrected``:
            its first word is.
    """
    if text is None:
        return None
    return _first_letters(text.replace("*", "")) if variant == "published" else _first_word(text)


def _first_letters(text: str) -> YesNo | None:
    # As the released script, so that "Not sure" and "Nothing happens" are no.
    start = text[:3].lower()
    return "yes" if start.startswith("yes") else "no" if start.startswith("no") else None


def _first_word(text: str) -> YesNo | None:
    found = _FIRST_WORD.match(text)
    return None if found is None else "yes" if found[1].lower() == "yes" else "no"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventHallusionMetric(SoftMetric):
    """EventHallusion (Zhang et al., 2024; the released ``eval.py``).

    * ``question_accuracy`` = right answers / questions
    * ``description_accuracy`` = descriptions judged right / judged descriptions
    * ``question_unparsed_rate`` = answers that could not be parsed / questions
    * ``description_unparsed_rate`` = judgements that could not be parsed / judged descriptions

    The released script prints them for each split (the groups of ``split``) and overall.
    ``published`` reproduces the script, including its known bugs:

    * An answer or judgement that starts with the letters yes or no is parsed as that word, such as
      "Not sure" and "Nothing happens" as no.
    * Any other text is wrong, such as "So the answer is no." and " No.". A missing answer is wrong
      too, and a failed judgement counts against the model.
    * Asterisks are removed from judgements, but not from answers.

    ``corrected`` parses the first whole word, or else a clear yes or no by the parser ``strict``
    (answers only). Unparsed answers and judgements count neither in the numerator nor in the
    denominator, and neither do missing answers and failure texts.

    With ``soft``, a judged description adds P(right) to the right ones instead of 0 or 1, the
    probability that its judge states. One without it adds 0 or 1 by its verdict.

    A description without a judgement counts in neither variant; the script stops there. Labels may
    end with a full stop; the script accepts only "Yes." and "No.".

    Attributes:
        variant: ``published`` or ``corrected``.
        judgements: Where judgements of descriptions come from: ``given``, or a judge.
        judge: The judge, its prompts and its parameters, for the signature. Empty without a judge.
        soft: ``yes`` counts probabilities of descriptions instead of verdicts.
    """

    name: ClassVar[Literal["event-hallusion"]] = "event-hallusion"
    summary: ClassVar[str] = "Right answers about events in videos, and right descriptions."
    papers: ClassVar[tuple[Paper, ...]] = (
        Paper(
            title="EventHallusion: Diagnosing Event Hallucinations in Video LLMs",
            authors="Zhang et al.",
            year=2024,
            link="arXiv:2409.16597",
            where="eval.py",
        ),
    )
    variants: ClassVar[tuple[VariantDefinition, ...]] = (
        VariantDefinition(
            name="published",
            meaning="The released script: unparsed answers and failed judgements are wrong.",
        ),
        VariantDefinition(
            name="corrected",
            meaning="Whole words are parsed; unparsed answers and failed judgements do not count.",
        ),
    )
    options: ClassVar[tuple[OptionDefinition, ...]] = (
        OptionDefinition(
            name="judgements",
            default="given",
            choices=("given", "llm", "router"),
            meaning="Judgements of descriptions.",
            details="given uses those of the file; llm and router are judges.",
        ),
        soft_option(
            "P(right)",
            "Needs a judge of descriptions with log-probabilities. Descriptions without a "
            "probability count by their verdict.",
        ),
    )
    soft_scores: ClassVar[str] = (
        "in description_accuracy a description counts P(right) instead of 0 or 1"
    )
    soft_noun: ClassVar[str] = "descriptions"
    unit: ClassVar[Literal["videos"]] = "videos"
    unresolved: ClassVar[str] = "open"
    columns: ClassVar[tuple[Column, ...]] = (
        Column(name="asked", meaning="questions"),
        Column(name="answered", meaning="questions that count in the accuracy"),
        Column(name="right", meaning="right answers"),
        Column(name="unparsed", meaning="answers that could not be parsed"),
        Column(name="judged", meaning="judged descriptions"),
        Column(name="decided", meaning="judged descriptions that count in the accuracy"),
        Column(name="approved", meaning="descriptions that are right", integral=False),
        Column(name="undecided", meaning="judgements that could not be parsed"),
        Column(name="without_probability", meaning="soft: descriptions that count by verdict"),
        Column(name="open", meaning="answers and judgements of scored videos that do not count"),
        Column(name="open_judgements", meaning="judgements of scored videos that do not count"),
    )
    score_definitions: ClassVar[tuple[ScoreDefinition, ...]] = (
        share("question_accuracy", "right answers / questions", "right", "answered"),
        share(
            "description_accuracy",
            "descriptions judged right / judged descriptions",
            "approved",
            "decided",
        ),
        share(
            "question_unparsed_rate",
            "answers that could not be parsed / questions",
            "unparsed",
            "asked",
            direction="lower",
            bounded=False,
        ),
        share(
            "description_unparsed_rate",
            "judgements that could not be parsed / judged descriptions",
            "undecided",
            "judged",
            direction="lower",
            bounded=False,
        ),
    )
    judged: ClassVar[tuple[JudgedColumn, ...]] = (
        JudgedColumn(
            column="approved", of="claim", scores=("description_accuracy",), supported=True
        ),
    )

    judgements: str = ""
    judge: str = ""

    def signature_fields(self) -> tuple[tuple[str, str], ...]:
        """Return where judgements come from, the archive or a judge, and whether they are soft."""
        judge = (("judge", self.judge),) if self.judge else ()
        return (("judgements", self.judgements), *self.soft_fields(), *judge)

    def verdicts_in(self, totals: Mapping[str, float]) -> int:
        """Return the number of judged descriptions that count."""
        return int(totals["decided"])

    def score_video(
        self, item: EventHallusionItem, probability: float | None = None
    ) -> ScoredItem[EventHallusionEvidence]:
        """Return the statistics of a video whose labels are ``yes`` or ``no``.

        Args:
            item: The video.
            probability: Probability that the description is right, if its judge states one.
        """
        answers = tuple(self._verdict(question) for question in item.questions)
        judgement = parse_judgement(item.judgement, self.variant)
        correct = None if item.judgement is None else self._counted(judgement, "yes")
        judged = [] if item.judgement is None else [correct]
        about_answers = _counts([verdict.answer for verdict in answers], [v[3] for v in answers])
        about_judged = _counts([judgement] * len(judged), judged)
        right, without = self._share(correct, probability)
        readable = bool(about_answers[1] + about_judged[1])
        left_out = [about_answers[0] - about_answers[1], about_judged[0] - about_judged[1]]
        # An unscored video has bounds of its own.
        still_open = (sum(left_out), left_out[1]) if readable else (0, 0)
        return ScoredItem(
            statistics=(
                *about_answers,
                *about_judged[:2],
                right,
                about_judged[3],
                without,
                *still_open,
            ),
            scores=_own_scores(about_answers, None if correct is None else right),
            evidence=EventHallusionEvidence(
                answers=answers, judgement=judgement, description_correct=correct
            ),
            readable=readable,
        )

    def _share(self, correct: bool | None, probability: float | None) -> tuple[float, int]:
        """Return what a description adds to the right ones, and whether it does by its verdict."""
        if not self.is_soft or correct is None:
            return int(correct is True), 0
        return (int(correct), 1) if probability is None else (probability, 0)

    def _verdict(self, question: EventQuestion) -> EventVerdict:
        answer = parse_answer(question.response, self.variant)
        correct = self._counted(answer, question.label)
        return EventVerdict(question.question, question.label, answer, correct)

    def _counted(self, answer: str | None, label: str) -> bool | None:
        """Return whether an answer is right; None if it does not count."""
        if answer is None and self.variant == "corrected":
            return None
        return answer == label

    def resolve(self, items: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, FloatArray]:
        """Return the columns with everything that does not count as right, or as wrong.

        ``published`` counts everything. A video without anything that counts is unscored;
        :meth:`extreme` has its bounds.
        """
        judgements = items["open_judgements"]
        answers = items["open"] - judgements
        return {
            **items,
            "answered": items["answered"] + answers,
            "right": items["right"] + answers * best,
            "decided": items["decided"] + judgements,
            "approved": items["approved"] + judgements * best,
        }

    def extreme(self, observed: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, float]:
        """Return an unscored video with all answers and the description right, or wrong."""
        asked, judged = (float(observed[name].max()) for name in ("asked", "judged"))
        return {
            **dict.fromkeys((column.name for column in self.columns), 0.0),
            "asked": asked,
            "answered": asked,
            "right": asked * best,
            "judged": judged,
            "decided": judged,
            "approved": judged * best,
        }


def _counts(
    answers: Sequence[str | None], correct: Sequence[bool | None]
) -> tuple[int, int, int, int]:
    """Return the numbers of all, counted, right and unparsed ones."""
    counting = [value for value in correct if value is not None]
    return len(answers), len(counting), sum(counting), sum(answer is None for answer in answers)


def _own_scores(
    answers: tuple[int, int, int, int], description: float | None
) -> dict[str, float | None]:
    scores: dict[str, float | None] = {}
    if answers[1]:
        scores["question_accuracy"] = answers[2] / answers[1]
    if description is not None:
        scores["description_accuracy"] = float(description)
    return scores
