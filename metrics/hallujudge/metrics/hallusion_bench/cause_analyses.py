"""HallusionBench's causes of wrong answers: language, vision, or both.

The paper diagnoses failures by them. The cause of an answer about a figure follows from the answer
to the same question without it, or about figure 0, so that causes are made from whole tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..answers.answer_scores import ReadAnswer, count
from ..answers.groupings import Grouping, value_of
from ..framework.arrays import BoolArray, FloatArray, np
from ..framework.columns_and_scores import ScoreDefinition, Sums, ratio
from .question_groups import (
    JUDGES,
    NO_VERDICT,
    RIGHT,
    UNCLEAR,
    UNKNOWN_INPUT,
    WRONG,
    Rows,
    code_of,
)

UNKNOWN = 2
"""Value if it is unknown whether an answer agrees with the one for figure 0."""

CAUSES = ("language_hallucination", "visual_illusion", "mixed")
"""Causes of a wrong answer."""
_OPPOSITE = {"yes": "no", "no": "yes"}
_SAID = {"yes": 1, "no": 2}
_SAME = {"1": 1, "0": 0}


def _said(answer: ReadAnswer) -> int:
    """Return the answer as a code; a judged answer is its label if right, else the opposite."""
    value, verdict = answer.value or "", code_of(answer)
    # A judge states correctness only; the answer follows from it, as there are but two.
    if answer.how in JUDGES and answer.label and verdict != UNCLEAR:
        value = answer.label if verdict == RIGHT else _OPPOSITE[answer.label]
    return _SAID.get(value, 0)


def _same(answer: ReadAnswer) -> int:
    return _SAME.get(answer.field("same"), UNKNOWN) if answer.how == "given" else UNKNOWN


def _blamed(cause: str) -> Callable[[ReadAnswer], bool]:
    return lambda answer: _cause_of(answer) == cause


def _cause_of(answer: ReadAnswer) -> str:
    """Return the cause of a wrong answer by the answer alone; empty for a right one."""
    verdict = code_of(answer)
    if answer.field("category") == "VD":
        blind = answer.field("figure_id") == "0"
        failed = "visual_illusion" if blind else "mixed"
        unclear = "visual_illusion"
    else:
        shown = answer.field("visual_input") != "0"
        failed, unclear = ("mixed", "visual_illusion") if shown else ("language_hallucination", "")
    return {WRONG: failed, UNCLEAR: unclear}.get(verdict, "")


QUESTION_CAUSES = tuple(
    count(f"question_{cause}", f"{meaning}, by the answer alone", _blamed(cause))
    for cause, meaning in zip(
        CAUSES,
        ("wrong without a figure", "wrong because of the figure", "wrong for either reason"),
        strict=True,
    )
)
"""Counts of the causes of wrong answers, by the answer alone."""
COMPARED = (
    value_of("same", "whether it agrees with figure 0", _same),
    value_of("said", "the parsed answer", _said),
)
"""The columns by which an answer is compared with the one for figure 0."""


def _known(top: str, bottom: str, unknown: str) -> Callable[[Sums], FloatArray]:
    """Return a share that is undefined if the cause of a failure is unknown."""
    over = ratio(top, bottom)

    def value(sums: Sums) -> FloatArray:
        return np.where(sums[unknown] > 0, np.nan, over(sums))

    return value


def _cause(prefix: str, cause: str, failures: str, bottom: str, unknown: str) -> ScoreDefinition:
    name = f"{prefix}{cause}"
    # Shares of wrong answers have no prefix; their columns are named ``failure_…``.
    top = name if prefix else f"failure_{cause}"
    return ScoreDefinition(
        name=name,
        meaning=f"{failures} with the cause {cause.replace('_', ' ')} / {failures}",
        columns=(top, bottom, unknown) if unknown else (top, bottom),
        value=_known(top, bottom, unknown) if unknown else ratio(top, bottom),
        count=bottom,
        bounded=False,
    )


_CAUSES = (
    ("", "wrong answers", "failures", "failures_unknown"),
    ("question_", "wrong answers judged alone", "failures", ""),
    ("pair_", "wrong pairs", "pairs_wrong", "pairs_unknown"),
)
CAUSE_SCORES = tuple(_cause(prefix, cause, *of) for prefix, *of in _CAUSES for cause in CAUSES)
"""The shares of causes."""


def cause_columns(rows: Rows, pairs: Grouping) -> dict[str, FloatArray]:
    """Return the columns of the causes of wrong pairs and wrong answers."""
    blame = _blame(rows, pairs)
    return {**_pair_columns(rows, pairs, blame), **_failure_columns(rows, blame)}


def _pair_columns(rows: Rows, pairs: Grouping, blame: _Blame) -> dict[str, FloatArray]:
    wrong = (pairs.count(rows.unscored) == 0) & (pairs.count(rows.wrong) > 0)
    language, vision = pairs.count(blame.language) > 0, pairs.count(blame.vision) > 0
    causes = _causes(wrong & language, wrong & vision)
    unknown = wrong & (pairs.count(blame.unknown) > 0)
    return {
        "pairs_wrong": pairs.placed(wrong),
        "pairs_unknown": pairs.placed(unknown),
        **{f"pair_{cause}": pairs.placed(found) for cause, found in causes.items()},
    }


def _failure_columns(rows: Rows, blame: _Blame) -> dict[str, FloatArray]:
    causes = _causes(blame.language, blame.vision)
    return {
        "failures": rows.wrong.astype(np.float64),
        "failures_unknown": blame.unknown.astype(np.float64),
        **{f"failure_{cause}": found.astype(np.float64) for cause, found in causes.items()},
    }


def _causes(language: BoolArray, vision: BoolArray) -> dict[str, BoolArray]:
    return dict(
        zip(CAUSES, (language & ~vision, vision & ~language, language & vision), strict=True)
    )


class _Blame(NamedTuple):
    """Causes of each wrong answer."""

    language: BoolArray
    vision: BoolArray
    unknown: BoolArray


def _blame(rows: Rows, pairs: Grouping) -> _Blame:
    """Return the causes by the released script's table, which docs/reference lists."""
    before, same = _compared(rows, pairs)
    edited, failed, unclear = ~rows.original, rows.verdict == WRONG, rows.verdict == UNCLEAR
    depends, supplement = edited & ~rows.supplement, edited & rows.supplement
    was_right, was_wrong, was_unclear = (before == v for v in (RIGHT, WRONG, UNCLEAR))
    no_before = before == NO_VERDICT
    # A wrong answer that repeats the one for figure 0 ignores the figure: language is the cause.
    copied = (depends & was_right & failed) | (supplement & was_wrong & failed)
    copied |= supplement & was_right & failed & (rows.visual_input == 2)
    unknown = (copied & (same == UNKNOWN)) | (
        no_before & ((depends & failed) | (supplement & (failed | unclear)))
    )
    unknown |= supplement & was_right & failed & (rows.visual_input == UNKNOWN_INPUT)
    language = rows.original & rows.supplement & failed
    language |= copied & (same == 1)
    language |= supplement & was_wrong & (failed | unclear)
    vision = rows.original & ~rows.supplement & (failed | unclear)
    vision |= depends & (failed | unclear)
    vision |= supplement & was_unclear & (failed | unclear)
    vision |= supplement & was_right & (unclear | (failed & (rows.visual_input != 2)))
    vision |= supplement & was_right & failed & (rows.visual_input == 2) & (same == 0)
    vision |= supplement & was_wrong & (unclear | (failed & (same == 0)))
    return _Blame(language & ~unknown, vision & ~unknown, unknown)


def _compared(rows: Rows, pairs: Grouping) -> tuple[FloatArray, FloatArray]:
    """Return the verdict for figure 0, and whether the answer is the same, for each row."""
    size = int(pairs.of.max(initial=-1)) + 1
    verdicts, answers = np.full(size, float(NO_VERDICT)), np.zeros(size)
    verdicts[pairs.of[rows.original]] = rows.verdict[rows.original]
    answers[pairs.of[rows.original]] = rows.said[rows.original]
    first = answers[pairs.of]
    both = (rows.said > 0) & (first > 0)
    return verdicts[pairs.of], np.where(both, rows.said == first, rows.same)
