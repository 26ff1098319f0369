"""POPE: yes/no questions about objects that an image shows or lacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from ..answers.answer_text import MAX_KEPT_CHARS, folded
from ..answers.closed_questions import AnswerEvidence
from ..answers.yes_no import YesNo, yes_no_parser
from ..errors import OptionError
from ..framework.columns_and_scores import Column, ScoreDefinition, share
from ..framework.metric import Metric, Paper, VariantDefinition
from ..framework.results import CanonicalRecord, Item, ScoredItem

if TYPE_CHECKING:
    from ..framework.columns_and_scores import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class PopeItem(Item):
    """A yes/no question about an image, its label and the answer."""

    response: str | None
    """What the model wrote; None if there is no response, which leaves the item unscored."""
    question: str = ""
    """The question."""
    label: str
    """The right answer: ``yes`` or ``no``."""

    def question_record(self) -> CanonicalRecord:
        """Return the question."""
        return self.question

    def reference_record(self) -> CanonicalRecord:
        """Return the label."""
        return self.label


_LABELS = ("yes", "no")
_MEANINGS = {
    "published": "POPE's script: an answer is no if its first sentence has no or not, else yes.",
    "opera": "OPERA's script: as published, over the whole answer, and words in n't are no.",
    "lmms-eval": "lmms-eval: the whole answer is yes or no; any other counts as wrong.",
    "vlmevalkit": "VLMEvalKit: exactly one of the words yes and no; any other counts as wrong.",
    "strict": "Ours: a clear yes or a clear no; any other answer is unscored.",
}


class PopeCounts(NamedTuple):
    """Answers by outcome."""

    questions: int
    """All answers."""
    answered: int
    """Answers that count in the accuracy."""
    tp: int
    """Yes to objects that are there."""
    fp: int
    """Yes to objects that are not there."""
    tn: int
    """No to objects that are not there."""
    fn: int
    """No to objects that are there; also unparsed answers if the variant counts them as no."""
    unparsed: int
    """Unparsed answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PopeMetric(Metric):
    """POPE (Li et al., Evaluating Object Hallucination in Large Vision-Language Models, 2023).

    Over questions with the label yes or no (section 5.1, "Metrics"), with yes as the positive
    class:

    * ``accuracy`` = right answers / answers
    * ``precision`` = right yes / all yes
    * ``recall`` = right yes / (right yes + wrong no)
    * ``f1`` = 2 right yes / (2 right yes + wrong yes + wrong no), the harmonic mean of the two
    * ``yes_ratio`` = yes / answers, of the *predictions* (one tool reports the labels' share)
    * ``unparsed_rate`` = unparsed answers / all answers

    A variant is a parser of ``hallujudge.metrics.answers.yes_no``. ``published`` follows the
    released script: an answer that is not clearly no is yes, so that none is unparsed.
    ``lmms-eval`` and ``vlmevalkit`` count unparsed answers as wrong, as those tools do. Precision
    and recall of ``lmms-eval`` leave them out; recall of ``vlmevalkit`` counts them as no.
    ``strict`` leaves them unscored.

    Differences from the released scripts: they join answers to questions by order, and stop with a
    division by zero if a model never says yes. Here the precision is then None, and ``f1`` is 0 if
    any answer is wrong.

    Attributes:
        variant: The parser's name.
    """

    name: ClassVar[Literal["pope"]] = "pope"
    summary: ClassVar[str] = "Yes answers to questions about objects that an image lacks."
    papers: ClassVar[tuple[Paper, ...]] = (
        Paper(
            title="Evaluating Object Hallucination in Large Vision-Language Models",
            authors="Li et al.",
            year=2023,
            link="arXiv:2305.10355",
            where="section 5.1",
        ),
    )
    variants: ClassVar[tuple[VariantDefinition, ...]] = tuple(
        VariantDefinition(name=name, meaning=meaning) for name, meaning in _MEANINGS.items()
    )
    unit: ClassVar[Literal["questions"]] = "questions"
    split_fields: ClassVar[frozenset[str]] = frozenset({"category"})
    columns: ClassVar[tuple[Column, ...]] = (
        Column(name="answered", meaning="answers that count in the accuracy"),
        Column(name="tp", meaning="yes to objects that are there"),
        Column(name="fp", meaning="yes to objects that are not there"),
        Column(name="tn", meaning="no to objects that are not there"),
        Column(name="fn", meaning="no to objects that are there"),
        Column(name="wrong", meaning="wrong answers that count in f1"),
        Column(name="unparsed", meaning="answers that the parser could not read"),
    )
    score_definitions: ClassVar[tuple[ScoreDefinition, ...]] = (
        share("accuracy", "right answers / answers", ("tp", "tn"), "answered"),
        share(
            "precision",
            "right yes answers / yes answers",
            "tp",
            ("tp", "fp"),
            count="answered",
        ),
        share(
            "recall",
            "right yes answers / questions about objects that are there",
            "tp",
            ("tp", "fn"),
            count="answered",
        ),
        share(
            "f1",
            "harmonic mean of precision and recall",
            ("tp", "tp"),
            ("tp", "tp", "wrong"),
            count="answered",
        ),
        share(
            "yes_ratio",
            "yes answers / answers",
            ("tp", "fp"),
            "answered",
            direction="neither",
            bounded=False,
        ),
        share(
            "unparsed_rate",
            "answers that the parser could not read / answers",
            "unparsed",
            "questions",
            direction="lower",
            count="",
            bounded=False,
        ),
    )

    _read: Callable[[str], YesNo | None] = field(init=False, repr=False, compare=False)
    _outcomes: Mapping[tuple[YesNo | None, str], ScoredItem[AnswerEvidence]] = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        # slots=True creates a new class, so super() without arguments does not work here.
        Metric.__post_init__(self)
        object.__setattr__(self, "_read", yes_no_parser(self.variant))
        answers: tuple[YesNo | None, ...] = ("yes", "no", None)
        # There are six outcomes, however many answers.
        object.__setattr__(
            self,
            "_outcomes",
            {(a, label): self._outcome(a, label) for a in answers for label in _LABELS},
        )

    @property
    def repeated_by(self) -> str:
        """``category`` for ``vlmevalkit``, whose table counts an item in each of its categories."""
        return "category" if self.variant == "vlmevalkit" else ""

    def read(self, response: str) -> YesNo | None:
        """Parse an answer with this variant's parser."""
        return self._read(response)

    def score_answer(self, response: str, label: str) -> ScoredItem[AnswerEvidence]:
        """Return the statistics of one answer.

        Args:
            response: What the model wrote.
            label: ``yes`` or ``no``.

        Raises:
            OptionError: The label is neither.
        """
        scored = self._outcomes.get((self._read(response), label))
        if scored is None:
            raise OptionError(self.name, "label", f"{label!r} is neither 'yes' nor 'no'")
        return scored

    def count(self, answers: Iterable[str], labels: Iterable[str]) -> PopeCounts:
        """Count many answers at once, without a result for each.

        Every distinct answer is parsed once; each repetition is one look-up.

        Args:
            answers: What the model wrote.
            labels: ``yes`` or ``no``, one for each answer.

        Raises:
            OptionError: A label is neither ``yes`` nor ``no``, or the numbers of answers and labels
                differ.
        """
        import numpy as np

        said = np.frombuffer(bytes(map(_Codes(self._read).__getitem__, answers)), dtype=np.uint8)
        try:
            right = np.frombuffer(bytes(map(_LABEL_CODES.__getitem__, labels)), dtype=np.uint8)
        except KeyError as err:
            problem = f"{err.args[0]!r} is neither 'yes' nor 'no'"
            raise OptionError(self.name, "label", problem) from err
        if len(said) != len(right):
            raise OptionError(
                self.name, "labels", f"there are {len(right)} labels for {len(said)} answers"
            )
        cells = np.bincount(said * np.uint8(2) + right, minlength=6)
        totals = [0] * len(self.columns)
        for cell, number in enumerate(cells.tolist()):
            row = self._outcomes[_ANSWERS[cell // 2], _LABELS[cell % 2]].statistics
            totals = [total + number * value for total, value in zip(totals, row, strict=True)]
        answered, tp, fp, tn, fn, _, unparsed = totals
        return PopeCounts(len(said), answered, tp, fp, tn, fn, unparsed)

    def _outcome(self, answer: YesNo | None, label: str) -> ScoredItem[AnswerEvidence]:
        unread = answer is None
        right = answer == label
        tp, fp = int(answer == "yes" and right), int(answer == "yes" and not right)
        tn, fn = int(answer == "no" and right), int(answer == "no" and not right)
        if unread and self.variant == "vlmevalkit":
            # That tool counts an answer that it can't parse as not yes.
            fn = int(label == "yes")
        readable = not (unread and self.variant == "strict")
        return ScoredItem(
            statistics=(int(readable), tp, fp, tn, fn, fp + fn, int(unread)),
            scores={"accuracy": float(right), "unparsed_rate": float(unread)} if readable else {},
            evidence=AnswerEvidence(answer=answer, label=label, correct=right, how=self.variant),
            readable=readable,
        )

    def extreme(self, observed: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, float]:  # noqa: ARG002
        """Return a right yes at best, and a wrong answer at worst.

        A wrong yes lowers the precision and a wrong no the recall. Each score's bound uses the
        worse one.
        """
        good, bad = float(best), float(not best)
        return {
            "answered": 1.0,
            "tp": good,
            "fp": bad,
            "tn": 0.0,
            "fn": bad,
            "wrong": bad,
            "unparsed": 0.0,
        }


_ANSWERS: tuple[YesNo | None, ...] = ("yes", "no", None)
_LABEL_CODES = {"yes": 0, "no": 1}
_CODE_OF: Mapping[YesNo | None, int] = {"yes": 0, "no": 1, None: 2}
_KEPT_CODES = 1 << 16


class _Codes(dict[str, int]):
    """Cache of bounded size: answer -> 0 (yes), 1 (no) or 2 (neither)."""

    def __init__(self, read: Callable[[str], YesNo | None]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, answer: str) -> int:
        code = _CODE_OF[self._read(answer)]
        if len(self) < _KEPT_CODES and len(answer) <= MAX_KEPT_CHARS:
            self[answer] = code
        return code


@dataclass(frozen=True, slots=True, kw_only=True)
class VqaMatch:
    """What a judge found."""

    answer: str | None
    """The right answer that the response matches; None if it matches none or is unparsed."""
    read: bool
    """Whether the judge's reply was parsed; if not, the response is unscored, never wrong."""


def offered_answers(answers: Sequence[str]) -> tuple[str, ...]:
    """Return each right answer once, the most frequent first; a judge names the first match."""
    first: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for answer in answers:
        counts[folded(answer)] += 1
        first.setdefault(folded(answer), answer)
    return tuple(first[key] for key, _ in counts.most_common())


def match_of_number(verdict: str, offered: Sequence[str]) -> VqaMatch:
    """Return the right answer by a judge's number: 1 is the first one, 0 is none.

    A judge may only name numbers, so that no text of an answer can become a verdict.
    """
    said = verdict.strip().strip("\"'.")
    if said.isascii() and said.isdecimal() and int(said) <= len(offered):
        return VqaMatch(answer=offered[int(said) - 1] if int(said) else None, read=True)
    return VqaMatch(answer=None, read=False)


def vqa_score(answer: str | None, answers: Sequence[str]) -> float:
    """Return the VQA score (Antol et al. 2015) of a matched answer.

    Each person is left out in turn; the score is the mean of min(1, number of others with the same
    answer / 3).

    Args:
        answer: The matched right answer; None if there is none.
        answers: The answers of people, usually ten.
    """
    if answer is None or not answers:
        return 0.0
    same = [folded(other) == folded(answer) for other in answers]
    total = sum(same)
    return sum(min(1.0, (total - mine) / 3) for mine in same) / len(same)
