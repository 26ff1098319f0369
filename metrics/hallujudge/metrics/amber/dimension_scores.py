"""AMBER's scores of answers, over all questions and for each dimension, in both variants."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from msgspec import structs

from ..answers.answer_scores import (
    AnswerScore,
    Condition,
    ReadAnswer,
    count,
    is_any,
    is_right,
    share,
)
from ..framework.arrays import FloatArray, np
from ..framework.columns_and_scores import Ratio, Sums

if TYPE_CHECKING:
    Formula: TypeAlias = Callable[[Sums], FloatArray]

_DIMENSIONS = ("all", "existence", "attribute", "state", "number", "action", "relation")
"""All questions, then the dimensions; attribute is state, number and action together."""
_ATTRIBUTES = frozenset({"state", "number", "action"})

ADDED = 0.001
"""Start value of each count of a denominator in the released script."""
_COUNTS_ADDED = {"attribute": 3}
"""Number of counts that a denominator sums up; 1 for other dimensions."""
_EPSILON = {"existence": 0.001}
"""Addition to precision + recall in the released script; 0.0001 for other dimensions."""

_COUNTS: Mapping[str, tuple[str, Condition]] = {
    "asked": ("questions", is_any),
    "right": ("right answers", is_right),
    "no": ("questions whose answer is no", lambda a: a.label == "no"),
    "said_no": ("answers that say no", lambda a: a.value == "no"),
    "right_no": ("answers that rightly say no", lambda a: a.right and a.value == "no"),
}


def _within(dimension: str, when: Condition) -> Condition:
    """Return the condition of answers to a dimension's questions."""

    def holds(answer: ReadAnswer) -> bool:
        kind = answer.field("kind")
        known = ("all", kind, "attribute" if kind in _ATTRIBUTES else "")
        return dimension in known and when(answer)

    return holds


def _scores(dimension: str) -> tuple[AnswerScore, ...]:
    asked, right, no, said_no, right_no = (
        count(f"{dimension}_{name}", f"{meaning}: {dimension}", _within(dimension, when))
        for name, (meaning, when) in _COUNTS.items()
    )
    of_all = dimension == "all"
    prefix, within = ("", "") if of_all else (f"{dimension}_", f", {dimension} only")
    rows = (
        ("accuracy", "right answers / questions", right, asked),
        ("precision", "right no answers / no answers", right_no, said_no),
        ("recall", "right no answers / questions whose answer is no", right_no, no),
        ("f1", "harmonic mean of precision and recall", (right_no, right_no), (said_no, no)),
    )
    own = "accuracy" if of_all else ""
    shares = (
        share(f"{prefix}{name}", f"{meaning}{within}", of, among, n=asked, own=name == own)
        for name, meaning, of, among in rows
    )
    # Intervals are over all questions of a dimension.
    return tuple(map(_with_all, shares))


def _with_all(score: AnswerScore) -> AnswerScore:
    known = score.definition
    columns = tuple(dict.fromkeys((*known.columns, known.count)))
    return structs.replace(score, definition=replace(known, columns=columns))


def questions() -> tuple[AnswerScore, ...]:
    """Return the scores of all dimensions."""
    return tuple(score for dimension in _DIMENSIONS for score in _scores(dimension))


def released_questions() -> tuple[AnswerScore, ...]:
    """Return the scores of all dimensions as the released script computes them."""
    return tuple(score for dimension in _DIMENSIONS for score in _released_scores(dimension))


def _released_scores(dimension: str) -> Iterator[AnswerScore]:
    added = ADDED * _COUNTS_ADDED.get(dimension, 1)
    *shares, f1 = _scores(dimension)
    yield from (with_added(score, added) for score in shares)
    plain, epsilon = ratio_of(f1), _EPSILON.get(dimension, 0.0001)

    def of_printed(sums: Sums) -> FloatArray:
        """Return F1 from precision and recall in percent, rounded to one decimal as printed."""
        parts = [sums[plain.upper[0]] / (sums[name] + added) for name in plain.lower]
        # Python's rounding is exact in decimals; NumPy's is not.
        precision, recall = (
            np.array([round(x * 100, 1) / 100 for x in part.tolist()]) for part in parts
        )
        result: FloatArray = 2 * precision * recall / (precision + recall + epsilon)
        return result

    yield with_formulas(f1, of_printed, plain)


def with_added(score: AnswerScore, added: float = ADDED) -> AnswerScore:
    """Return a share with the released script's addition to its denominator.

    It is 0 where its denominator is.
    """
    [top], [bottom] = ratio_of(score).upper, ratio_of(score).lower

    def over(added: float) -> Formula:
        def value(sums: Sums) -> FloatArray:
            below = sums[bottom] + added
            # The count above is 0 where this one is.
            return sums[top] / np.where(below, below, 1)

        return value

    return with_formulas(score, over(added), over(0.0))


def with_formulas(score: AnswerScore, value: Formula, smooth: Formula) -> AnswerScore:
    """Return a score by another formula, and that for its interval; None where ``n`` is 0.

    The effect of an addition depends on the sample size; it is not an uncertainty of the model.
    """
    known = score.definition

    def counted(formula: Formula) -> Formula:
        def of(sums: Sums) -> FloatArray:
            return np.where(sums[known.count] > 0, formula(sums), np.nan)

        return of

    made = replace(known, value=counted(value), smooth=counted(smooth))
    return structs.replace(score, definition=made)


def ratio_of(score: AnswerScore) -> Ratio:
    """Return the ratio that a share is."""
    assert isinstance(score.definition.value, Ratio), "shares are ratios"
    return score.definition.value
