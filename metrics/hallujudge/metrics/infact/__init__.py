"""INFACT: the same question under a clean video, and under induced conditions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from ..answers.answer_text import says_it_is_unsure
from ..answers.choices import read_choice, read_free_answer
from ..answers.yes_no import YES_NO_PARSERS
from ..errors import OptionError
from ..framework.columns_and_scores import Column, ScoreDefinition
from ..framework.metric import Metric, OptionDefinition, Paper, VariantDefinition
from ..framework.results import CanonicalRecord, Item, JsonValue, ScoredItem
from .operators import (
    BASE,
    COLUMNS,
    INVARIANT,
    OPERATORS,
    SCORES,
    TEMPORAL,
    TEXT_ONLY,
    undefined_note,
)

if TYPE_CHECKING:
    from ..framework.columns_and_scores import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class InfactRun:
    """A model's answer under one operator."""

    response: str | None
    """What the model wrote; None without a response."""
    confidence: float | None = None
    """The model's stated confidence in [0, 1]; None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InfactItem(Item):
    """A question about a video, answered under the base condition and under induced ones."""

    label: str
    """The right answer: a letter, or the answer's text."""
    dimension: str = ""
    """``faithfulness`` or ``factuality``."""
    category: str = ""
    """Leaf of the taxonomy."""
    order_sensitive: bool = False
    """Whether the answer depends on the order of the frames."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Choices: letter -> text; empty if unknown."""
    runs: Mapping[str, InfactRun] = field(default_factory=dict)
    """Operator -> run; the base condition is ``base``."""

    def question_record(self) -> CanonicalRecord:
        """Return the choices."""
        return sorted(self.options.items())

    def reference_record(self) -> CanonicalRecord:
        """Return the label, and what the benchmark says of the question."""
        return self.label, self.dimension, self.category, self.order_sensitive


class RunVerdict(NamedTuple):
    """A question's outcome under one operator."""

    operator: str
    """The operator; ``base`` for the base condition."""
    answer: str | None
    """The parsed answer; None if it is missing or could not be parsed."""
    correct: bool | None
    """Whether it equals the label; None for an unparsed answer."""
    how: str
    """The rule that parsed it, or why none did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InfactEvidence:
    """Evidence of a question's scores."""

    label: str
    """The right answer, as parsed."""
    runs: tuple[RunVerdict, ...]
    """One verdict for each run, base first."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the label and each operator's answer."""
        return {
            "label": self.label,
            "runs": {
                run.operator: {"answer": run.answer, "correct": run.correct, "how": run.how}
                for run in self.runs
            },
        }


WRONG, RIGHT, UNREAD = range(3)


class ParsedRun(NamedTuple):
    """A parsed answer and its correctness."""

    answer: str | None
    """The parsed answer; None if it could not be parsed."""
    correct: bool | None
    """Whether it equals the label; None for an unparsed answer."""
    how: str
    """The rule that parsed it, or why none did."""
    unsure: bool
    """Whether the answer expresses uncertainty."""


_LETTER = re.compile(r"[\s(\[]*([A-Za-z])[\s)\].:]*")
# "B. opening the door"; few questions have more than eight options, and "J. K. Rowling" is a name.
_LETTER_AND_TEXT = re.compile(r"\s*[(\[]?([A-Ha-h])[)\].:]\s+(\S.*)", re.DOTALL)


@lru_cache(maxsize=1 << 15)
def read_run(response: str, label: str, options: tuple[tuple[str, str], ...]) -> ParsedRun:
    """Parse one answer.

    With options, the shared parser of choices is used. Without options, the label decides: a
    letter, ``yes`` or ``no`` (by the strict parser), or free text. A label such as ``B. opening the
    door`` matches its letter and its text.

    Args:
        response: What the model wrote.
        label: The right answer.
        options: Letter -> text; empty if unknown.
    """
    answer, right, how = _answer(response, label, dict(options))
    return ParsedRun(answer, None if answer is None else right, how, says_it_is_unsure(response))


def _answer(response: str, label: str, options: Mapping[str, str]) -> tuple[str | None, bool, str]:
    letter = _LETTER.fullmatch(label)
    if options:
        wanted = read_choice(label, options).choice
        reading = read_choice(response, options)
        return reading.choice, reading.choice == wanted, reading.how
    if letter:
        reading = read_choice(response)
        return reading.choice, reading.choice == letter[1].upper(), reading.how
    if label.strip().casefold() in ("yes", "no"):
        said = YES_NO_PARSERS["strict"](response)
        return said, said == label.strip().casefold(), "strict"
    if lettered := _LETTER_AND_TEXT.fullmatch(label):
        reading = read_choice(response)
        if reading.choice is not None:
            return reading.choice, reading.choice == lettered[1].upper(), reading.how
        label = lettered[2]
    reading = read_free_answer(response, label)
    return reading.choice, reading.choice == read_free_answer(label, label).choice, reading.how


def outcomes_of(rows: Sequence[str], labels: Sequence[str], unread: int) -> bytes:
    """Return one byte for each answer: wrong, right or unparsed."""
    if len(rows) != len(labels):
        raise OptionError("infact", "answers", f"{len(rows)} answers to {len(labels)} questions")
    if not set(labels) <= set(_LETTERS):
        correct = _Known(lambda pair: _correct_code(pair[0], pair[1], unread))
        return bytes(map(correct.__getitem__, zip(rows, labels, strict=True)))
    import numpy as np

    # If labels are letters, the chosen letter does not depend on the label.
    chosen = np.frombuffer(bytes(map(_Known(_letter_code).__getitem__, rows)), dtype=np.uint8)
    wanted = np.frombuffer("".join(labels).encode(), dtype=np.uint8)
    found = np.where(chosen == wanted, RIGHT, np.where(chosen == 0, unread, WRONG))
    return found.astype(np.uint8).tobytes()


_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class _Known(dict[Any, int]):
    """Cache of bounded size: key -> code."""

    def __init__(self, find: Callable[[Any], int]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, key: Any) -> int:
        code = self._find(key)
        if len(self) < (1 << 16):
            self[key] = code
        return code


def _letter_code(response: str) -> int:
    choice = read_choice(response).choice
    return ord(choice) if choice else 0


def _correct_code(response: str, label: str, unread: int) -> int:
    correct = read_run(response, label, ()).correct
    return unread if correct is None else int(correct)


OVERCONFIDENT = 0.7
"""Wrong answers with at least this confidence resemble hallucinations (appendix A.4)."""
KNOWLEDGE_GAP = 0.4
"""Wrong answers with at most this confidence resemble knowledge gaps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InfactMetric(Metric):
    """INFACT (Yang et al., 2026, section 3.4; no script is public).

    "Base-right" questions are those with a right answer to the clean video.

    * ``base_accuracy``, ``text_only``: right answers / answers, with and without the video
    * ``rr_<operator>`` (Resist Rate): base-right questions still right under an operator that keeps
      the label / base-right questions asked under it
    * ``rr_visual_degradation``, ``rr_evidence_corruption``: the means over a mode's three operators
    * ``tss_<operator>`` (Temporal Sensitivity Score): base-right, order-sensitive questions whose
      answer is no longer the label / base-right, order-sensitive questions asked; ``tss``: the mean
      of shuffle and reverse; ``…_order_insensitive``: the same over the other questions
    * ``average`` = (``rr_evidence_corruption`` + ``rr_visual_degradation`` + ``tss``) / 3
    * ``overconfident_share``, ``knowledge_gap_share``: shares of the wrong base answers with a
      confidence or words of uncertainty: those with at least 0.7, and those with at most 0.4 or
      such words (A.4)
    * ``unparsed_rate``: unparsed answers / answers

    A ratio without base-right questions is None, and so is every mean with such a ratio: a mode
    with an operator that was not run has no mean. ``n`` is the number of questions in the
    denominator; a mode has that of its first operator, ``average`` the number of base-right
    questions.

    An unparsed answer counts neither in the numerator nor in the denominator of its operator. A
    question whose base answer is unparsed is unscored. With ``unparsed="wrong"``, unparsed answers
    count as wrong; under shuffle and reverse, as changed.

    Attributes:
        variant: ``paper``.
        unparsed: Outcome of an unparsed answer: ``unscored`` or ``wrong``.
    """

    name: ClassVar[Literal["infact"]] = "infact"
    summary: ClassVar[str] = "Right answers that survive degraded videos and false evidence."
    papers: ClassVar[tuple[Paper, ...]] = (
        Paper(title="INFACT", authors="Yang et al.", year=2026, where="sections 3.4, A.2, A.4"),
    )
    variants: ClassVar[tuple[VariantDefinition, ...]] = (
        VariantDefinition(name="paper", meaning="Follows the paper; no script is public."),
    )
    options: ClassVar[tuple[OptionDefinition, ...]] = (
        OptionDefinition(
            name="unparsed",
            default="unscored",
            choices=("unscored", "wrong"),
            meaning="Outcome of answers that cannot be parsed.",
        ),
    )
    unit: ClassVar[Literal["questions"]] = "questions"
    columns: ClassVar[tuple[Column, ...]] = COLUMNS
    score_definitions: ClassVar[tuple[ScoreDefinition, ...]] = SCORES

    unparsed: str = ""

    def signature_fields(self) -> tuple[tuple[str, str], ...]:
        """Return the outcome of unparsed answers."""
        return (("unparsed", self.unparsed),)

    def notes_on(self, totals: Mapping[str, float]) -> tuple[str, ...]:
        """Return which means of modes have no value, and which operators they lack."""
        note = undefined_note(totals)
        return (note,) if note else ()

    def score_question(self, item: InfactItem) -> ScoredItem[InfactEvidence]:
        """Return the statistics of a question; all its operators are known, and one is ``base``."""
        options = tuple(sorted(item.options.items()))
        read: dict[str, ParsedRun] = {}
        for operator in OPERATORS:
            run = item.runs.get(operator)
            if run is not None and run.response is not None:
                read[operator] = read_run(run.response, item.label, options)
        correct = {operator: reading.correct for operator, reading in read.items()}
        unparsed = sum(value is None for value in correct.values())
        if self.unparsed == "wrong":
            correct = {operator: bool(value) for operator, value in correct.items()}
        counts = (
            *_accuracies(correct),
            *_reliability(correct, item.order_sensitive),
            *_confidence(item, correct, read),
        )
        return ScoredItem(
            statistics=(*counts, len(read), unparsed),
            scores=_own_scores(correct, item.order_sensitive),
            evidence=InfactEvidence(
                label=item.label,
                runs=tuple(RunVerdict(operator, *row[:3]) for operator, row in read.items()),
            ),
            readable=correct.get(BASE) is not None,
        )

    def total(
        self,
        answers: Mapping[str, Sequence[str]],
        labels: Sequence[str],
        order_sensitive: Sequence[bool],
    ) -> dict[str, float | None]:
        """Return operators' scores over many questions, without a result for each.

        Each distinct pair of answer and label is parsed once. Confidences are ignored.

        Args:
            answers: Operator -> one answer for each question; includes ``base``.
            labels: One for each question.
            order_sensitive: One for each question.

        Returns:
            ``base_accuracy``, ``rr_<operator>`` and ``tss_<operator>`` for the operators given.
        """
        import numpy as np

        unread = WRONG if self.unparsed == "wrong" else UNREAD
        read = {
            operator: np.frombuffer(outcomes_of(rows, labels, unread), dtype=np.uint8)
            for operator, rows in answers.items()
        }
        right = read[BASE] == RIGHT
        subset = right & np.fromiter(order_sensitive, dtype=bool, count=len(labels))
        counts = {"base_accuracy": (right.sum(), (read[BASE] != UNREAD).sum())}
        for operator, found in read.items():
            if operator in INVARIANT:
                asked = right & (found != UNREAD)
                counts[f"rr_{operator}"] = ((asked & (found == RIGHT)).sum(), asked.sum())
            elif operator in TEMPORAL:
                asked = subset & (found != UNREAD)
                counts[f"tss_{operator}"] = ((asked & (found != RIGHT)).sum(), asked.sum())
        return {name: float(top / of) if of else None for name, (top, of) in counts.items()}

    def extreme(self, observed: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, float]:  # noqa: ARG002
        """Return a question with right answers at best, and wrong ones at worst.

        At worst, the base answer is wrong for the accuracy. For the rates, it is right and all
        other answers are wrong, or unchanged under shuffle and reverse. Each score uses its own
        columns.
        """
        row = dict.fromkeys((column.name for column in self.columns), 0.0)
        row |= {name: 1.0 for name in row if name.startswith(("asked_", "read_"))}
        good = ("right_", "kept_", "changed_")
        return row | {name: float(best) for name in row if name.startswith(good)}


def _accuracies(correct: Mapping[str, bool | None]) -> tuple[int, ...]:
    base, text_only = correct.get(BASE), correct.get(TEXT_ONLY)
    counted = base is not None
    return (
        int(base is True),
        int(counted),
        int(counted and text_only is True),
        int(counted and text_only is not None),
    )


def _reliability(correct: Mapping[str, bool | None], order_sensitive: bool) -> tuple[int, ...]:
    """Return kept and asked counts per operator, then changed and asked counts per subset."""
    if correct.get(BASE) is not True:
        return _NOTHING
    kept = [number for op in INVARIANT for number in _outcome(correct.get(op), wanted=True)]
    changed = [number for op in TEMPORAL for number in _outcome(correct.get(op), wanted=False)]
    none = [0] * len(changed)
    return (*kept, *(changed + none if order_sensitive else none + changed))


_NOTHING = (0,) * (2 * len(INVARIANT) + 4 * len(TEMPORAL))


def _outcome(correct: bool | None, *, wanted: bool) -> tuple[int, int]:
    return (0, 0) if correct is None else (int(correct is wanted), 1)


def _confidence(
    item: InfactItem, correct: Mapping[str, bool | None], read: Mapping[str, ParsedRun]
) -> tuple[int, int, int]:
    """Return whether a wrong base answer has a confidence, is overconfident, is a knowledge gap."""
    if correct.get(BASE) is not False:
        return (0, 0, 0)
    confidence = item.runs[BASE].confidence
    if confidence is not None and confidence >= OVERCONFIDENT:
        return (1, 1, 0)
    # Words of uncertainty are evidence of a knowledge gap even without a stated confidence.
    if read[BASE].unsure or (confidence is not None and confidence <= KNOWLEDGE_GAP):
        return (1, 0, 1)
    return (int(confidence is not None), 0, 0)


def _own_scores(
    correct: Mapping[str, bool | None], order_sensitive: bool
) -> dict[str, float | None]:
    base = correct.get(BASE)
    if base is None:
        return {}
    scores: dict[str, float | None] = {"base_accuracy": float(base)}
    if not base:
        return scores
    for operator, value in correct.items():
        if value is not None and operator in INVARIANT:
            scores[f"rr_{operator}"] = float(value)
        elif value is not None and operator in TEMPORAL and order_sensitive:
            scores[f"tss_{operator}"] = float(not value)
    return scores
