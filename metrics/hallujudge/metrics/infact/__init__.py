"""INFACT: the same question under a clean video, and under induced conditions.

Yang et al., 2026, section 3.4; no script is public. The item is a question with one answer for each
operator, by which the answers are named; ``base`` is the clean video. Answers have the fields
``confidence``, stated by the model in [0, 1], and ``order_sensitive``.

"Base-right" questions are those with a right answer to the clean video.

* ``base_accuracy``, ``text_only``: right answers / answers, with and without the video
* ``rr_<operator>`` (Resist Rate): base-right questions still right under an operator that keeps the
  label / base-right questions asked under it
* ``rr_visual_degradation``, ``rr_evidence_corruption``: the means over a mode's three operators
* ``tss_<operator>`` (Temporal Sensitivity Score): base-right, order-sensitive questions whose
  answer is no longer the label / base-right, order-sensitive questions asked; ``tss``: the mean of
  shuffle and reverse; ``…_order_insensitive``: the same over the other questions
* ``average`` = (``rr_evidence_corruption`` + ``rr_visual_degradation`` + ``tss``) / 3
* ``overconfident_share``, ``knowledge_gap_share``: shares of the wrong base answers with a
  confidence or words of uncertainty: those with at least 0.7, and those with at most 0.4 or such
  words (A.4)
* ``unparsed_rate``: unparsed answers / answers

A ratio without base-right questions is None, and so is every mean with such a ratio: a mode with an
operator that was not run has no mean. ``n`` is the number of questions in the denominator; a mode
has that of its first operator, ``average`` the number of base-right questions.

An unparsed answer counts neither in the numerator nor in the denominator of its operator. A
question whose base answer is unparsed is unscored. With the option ``unparsed`` = ``wrong``,
unparsed answers count as wrong; under shuffle and reverse, as changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..answers.answer_scores import (
    AnswerScore,
    Count,
    average,
    count,
    is_right,
    kept,
    named,
    noting,
    share,
    unparsed_rate,
)
from ..answers.answer_text import fraction_of
from ..answers.answers_metric import AnswersMetric
from ..answers.choices import is_an_option, parse_as_labelled
from ..answers.closed_questions import (
    Answer,
    AnswerFault,
    AnswersItem,
    AnswerVariant,
    Bundling,
    ClosedQuestions,
    Keys,
    of_first,
)
from ..answers.declared_metrics import metric_of
from ..framework.asking import ONE_LETTER, Shown, plain
from ..framework.metric import OptionDefinition
from ..framework.results import UnscoredReason
from .operators import (
    BASE,
    EVIDENCE_CORRUPTION,
    INVARIANT,
    OPERATORS,
    OVERCONFIDENCE_SCORES,
    TAXONOMY,
    TEMPORAL,
    TEXT_ONLY,
    VISUAL_DEGRADATION,
    level_of,
    undefined_note,
)

_OTHER = "_order_insensitive"
_BASE_RIGHT = count("right_base", "right answers to the clean video", named(BASE, is_right))


def _rr(operator: str) -> AnswerScore:
    return kept(
        f"rr_{operator}",
        f"base-right questions still right under {operator} / asked",
        named(BASE),
        named(operator),
        names=(f"kept_{operator}", f"asked_{operator}"),
        own=True,
    )


def _tss(operator: str, *, sensitive: bool = True) -> AnswerScore:
    kind, name = ("order-sensitive", operator) if sensitive else ("other", operator + _OTHER)
    return kept(
        f"tss_{name}",
        f"base-right, {kind} questions with a changed answer under {operator} / asked",
        named(BASE, lambda a: (a.field("order_sensitive") == "true") is sensitive),
        named(operator),
        turned=True,
        names=(f"changed_{name}", f"asked_{name}"),
        direction="higher" if sensitive else "neither",
        # Of the other questions no end is the better one, so that there is no best case.
        bounded=sensitive,
        own=sensitive,
    )


_RATES = {operator: _rr(operator) for operator in INVARIANT}
_CHANGES = [_tss(operator) for operator in TEMPORAL]
_OTHER_CHANGES = [_tss(operator, sensitive=False) for operator in TEMPORAL]
_VISUAL = average(
    "rr_visual_degradation",
    "mean rr over noise, blur and compression",
    [_RATES[operator] for operator in VISUAL_DEGRADATION],
)
_EVIDENCE = average(
    "rr_evidence_corruption",
    "mean rr over injected captions, corrupted subtitles and adversarial noise",
    [_RATES[operator] for operator in EVIDENCE_CORRUPTION],
)
_TSS = average("tss", "mean tss over shuffle and reverse", _CHANGES)


_MISSING = Count(
    name="missing",
    meaning="missing answers to scored questions",
    # An unparsed answer was given; a missing one neither counts nor was parsed.
    of=lambda bundle: sum(not (answer.counted or answer.unparsed) for answer in bundle),
)

SCORES: tuple[AnswerScore, ...] = (
    share(
        "base_accuracy",
        "right answers / answers",
        _BASE_RIGHT,
        count("read_base", "parsed answers to the clean video", named(BASE)),
        own=True,
    ),
    *_RATES.values(),
    _VISUAL,
    _EVIDENCE,
    *_CHANGES,
    _TSS,
    average(
        "average",
        "mean of rr_evidence_corruption, rr_visual_degradation and tss",
        [_EVIDENCE, _VISUAL, _TSS],
        n=_BASE_RIGHT,
    ),
    share(
        "text_only",
        "right answers without the video / answers",
        count("right_text_only", "right answers without the video", named(TEXT_ONLY, is_right)),
        count("read_text_only", "parsed answers without the video", named(TEXT_ONLY)),
        direction="neither",
        bounded=False,
    ),
    *_OTHER_CHANGES,
    average(
        f"tss{_OTHER}",
        "mean tss over questions that are not order-sensitive",
        _OTHER_CHANGES,
        direction="neither",
        bounded=False,
    ),
    *OVERCONFIDENCE_SCORES,
    noting(unparsed_rate("runs", "answers under any operator"), _MISSING),
)
"""The scores, in the order of the report."""


def _notes(totals: Mapping[str, float]) -> Iterator[str]:
    """Yield which means of modes have no value, and how many answers are missing."""
    if note := undefined_note(totals):
        yield note
    # A stored run may lack the column.
    if missing := totals.get(_MISSING.name, 0):
        yield (
            f"{missing:,.0f} of {missing + totals['runs']:,.0f} answers to scored questions are "
            "missing, and count in no score."
        )


def _completed(answer: Answer, record: Mapping[str, object]) -> Answer:
    """Return an answer, whose record is checked.

    Raises:
        ValueError: The record lacks order_sensitive, which its operator needs.
    """
    if answer.name in TEMPORAL and record.get("order_sensitive") in (None, ""):
        found = ", ".join(sorted(record))
        raise ValueError(
            f"records under {' or '.join(TEMPORAL)} have no order_sensitive (found {found})",
            "Give it to each: tss counts order-sensitive questions",
        )
    return answer


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorsMetric(AnswersMetric):
    """A metric whose labels choose one of the options of their questions, where these are known."""

    @classmethod
    def conditions(cls, record: Mapping[str, object]) -> tuple[str, ...]:
        """Return the operators of a question: mode IV is for those about the order of frames."""
        said = str(record.get("order_sensitive", "")).strip().casefold()
        ordered = said in ("true", "1", "yes")
        return tuple(name for name in OPERATORS if ordered or name not in TEMPORAL)

    @classmethod
    def shown(cls, record: Mapping[str, object]) -> Shown:
        """Return the video of a question, which one operator leaves out."""
        return Shown(media=None if record.get("operator") == TEXT_ONLY else ())

    @classmethod
    def fault(cls, answer: Answer, record: Mapping[str, object]) -> AnswerFault | None:
        """Return a confidence that is not a number from 0 to 1; answers may have none."""
        found = record.get("confidence")
        if found in (None, "") or fraction_of(answer.fields.get("confidence", "")) is not None:
            return None
        return AnswerFault(
            "confidences are not a number from 0 to 1",
            found,
            "Write 85 % as 0.85, and omit the key if the model gave no confidence",
        )

    def derived_fields(self, item: AnswersItem) -> Mapping[str, str]:
        """Return the level of a question's category, and whether the order of frames matters."""
        level = level_of(item.fields.get("category", ""))
        known = {"level": level} if level else {}
        return {**known, "order_sensitive": of_first("order_sensitive", "false")(item)}

    def problem(self, item: AnswersItem) -> tuple[UnscoredReason, str] | None:
        """Return which label is empty or not one of the options, or which confidence is wrong."""
        for answer in item.answers:
            # A server's caller may send any text, which no archive reader has checked.
            stated = answer.fields.get("confidence", "")
            if stated and fraction_of(stated) is None:
                said = f"{answer.name}: the confidence is {stated:.40}"
                return UnscoredReason.CONFIDENCE_INVALID, f"{said}; give a number from 0 to 1"
            label, options = answer.label, answer.options
            if not label.strip():
                return UnscoredReason.LABEL_INVALID, "the label is empty"
            if options and not is_an_option(label, options):
                known = ", ".join(sorted(options))
                detail = f"the label {label[:80]!r} is not one of the options {known}"
                return UnscoredReason.LABEL_INVALID, detail
        return None


BENCHMARK = ClosedQuestions(
    name="infact",
    title="INFACT: right answers that survive degraded videos and false evidence.",
    unit="questions",
    keys=Keys(
        response=("response", "answer", "prediction", "output", "text"),
        label=("label",),
        media=("video", "video_id", "group_id"),
        options=("options",),
        fields={
            name: (name,)
            for name in ("operator", "dimension", "category", "order_sensitive", "confidence")
        },
        values={
            "dimension": {name: name for name in TAXONOMY},
            # Spaces around a category are not part of it.
            "category": {},
            "order_sensitive": {
                **dict.fromkeys(("true", "1", "yes"), "true"),
                **dict.fromkeys(("false", "0", "no", ""), "false"),
            },
        },
        optional=("dimension", "category", "order_sensitive", "confidence"),
    ),
    bundle=Bundling(name=("operator",)),
    labels=(),
    base=OperatorsMetric,
    asking=plain(ONE_LETTER),
    seen=("confidence", "order_sensitive"),
    places={
        "operator": OPERATORS,
        "order_sensitive": ("", "true", "false"),
        "dimension": ("", *TAXONOMY),
    },
    variants=(
        AnswerVariant(
            name="paper",
            meaning="Follows the paper; no script is public.",
            parse=parse_as_labelled,
            unparsed="unscored",
            notes=_notes,
        ),
    ),
    options=(
        OptionDefinition(
            name="unparsed",
            choices=("unscored", "wrong"),
            meaning="Outcome of answers that cannot be parsed.",
        ),
    ),
    scores=SCORES,
    ranked_by=("average", "base_accuracy"),
    trial=AnswersItem(id="1", answers=(Answer(response="A", label="A", name=BASE),)),
    group_by=("dimension", "level", "category"),
    question_files="questions.json",
    complete=_completed,
)
"""The declaration."""
InfactMetric = metric_of(BENCHMARK)
"""The metric."""
