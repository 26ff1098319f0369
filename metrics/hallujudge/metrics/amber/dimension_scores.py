"""Counts and scores of AMBER, one set for each dimension and each variant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ..answers.answer_scores import (
    AnswerScore,
    Condition,
    Count,
    ReadAnswer,
    count,
    is_any,
    is_right,
    unparsed_rate,
)
from ..framework.columns_and_scores import ScoreDefinition, ratio

if TYPE_CHECKING:
    from ..framework.columns_and_scores import FloatArray, Sums

    Value: TypeAlias = Callable[[Sums], FloatArray]

DIMENSIONS = ("all", "existence", "attribute", "state", "number", "action", "relation")
"""All questions, then the dimensions; attribute is state, number and action together."""

_ADDED = 0.001
"""Start value of each count of a denominator in the released script."""
_COUNTS_ADDED = {"attribute": 3}
"""Number of counts that a denominator sums up; 1 for other dimensions."""
_EPSILON = {"existence": 0.001}
"""Addition to precision + recall in the released script; 0.0001 for other dimensions."""

_ATTRIBUTES = frozenset({"state", "number", "action"})

_QUESTION_COUNTS: Mapping[str, tuple[str, Condition]] = {
    "asked": ("questions", is_any),
    "right": ("right answers", is_right),
    "no": ("questions whose answer is no", lambda a: a.label == "no"),
    "said_no": ("answers that say no", lambda a: a.value == "no"),
    "right_no": ("answers that rightly say no", lambda a: a.right and a.value == "no"),
}
_DESCRIPTION_COLUMNS = {
    "descriptions": "descriptions",
    "hallucinating": "descriptions with a hallucinated object word",
    "words": "object words",
    "hallucinated": "hallucinated object words",
    "objects": "objects of the images",
    "covered": "objects that the descriptions name",
    "targets": "hallucination targets",
    "targets_said": "hallucination targets that the descriptions name",
}


def _within(dimension: str, when: Condition) -> Condition:
    """Return the condition of answers to a dimension's questions."""

    def holds(answer: ReadAnswer) -> bool:
        kind = answer.field("kind")
        return dimension in ("all", kind, "attribute" if kind in _ATTRIBUTES else "") and when(
            answer
        )

    return holds


_COUNTS = {
    each.name: each
    for each in (
        *(
            Count(name=name, meaning=meaning, of=lambda _: 0)
            for name, meaning in _DESCRIPTION_COLUMNS.items()
        ),
        *(
            count(f"{dimension}_{name}", f"{meaning}: {dimension}", _within(dimension, when))
            for dimension in DIMENSIONS
            for name, (meaning, when) in _QUESTION_COUNTS.items()
        ),
    )
}


class _Formulas(NamedTuple):
    """The scores of one variant; each function takes names of columns."""

    share: Callable[[str, str, float], Value]
    """Share of one column in another, with an addition to the denominator."""
    smooth: Callable[[str, str], Value | None]
    """The same without the addition, for the interval. None where nothing is added."""
    f1: Callable[[str], Value]
    """F1 of a dimension."""


def _plain_share(top: str, bottom: str, added: float) -> Value:  # noqa: ARG001
    return ratio(top, bottom)


def _shifted_share(top: str, bottom: str, added: float) -> Value:
    """Return the share with an addition to the denominator; NaN without a question or word."""

    def value(sums: Sums) -> FloatArray:
        import numpy as np

        result: FloatArray = sums[top] / (sums[bottom] + added)
        return np.where(sums[bottom] > 0, result, np.nan)

    return value


def _plain_f1(dimension: str) -> Value:
    right, said_no, no = (f"{dimension}_{name}" for name in ("right_no", "said_no", "no"))
    return ratio((right, right), (said_no, no))


def _released_f1(dimension: str) -> Value:
    """Return F1 from precision and recall in percent, rounded to one decimal as printed."""
    added = _ADDED * _COUNTS_ADDED.get(dimension, 1)
    epsilon = _EPSILON.get(dimension, 0.0001)

    def value(sums: Sums) -> FloatArray:
        import numpy as np

        right = sums[f"{dimension}_right_no"]
        parts = [right / (sums[f"{dimension}_{name}"] + added) for name in ("said_no", "no")]
        # Python's rounding is exact in decimals; NumPy's is not.
        precision, recall = (
            np.array([round(x * 100, 1) / 100 for x in part.tolist()]) for part in parts
        )
        result: FloatArray = 2 * precision * recall / (precision + recall + epsilon)
        return np.where(sums[f"{dimension}_asked"] > 0, result, np.nan)

    return value


def _zero_without(dimension: str, bottom: str, share: Value) -> Value:
    """Return a share; in the released script it is 0 if its denominator is."""

    def value(sums: Sums) -> FloatArray:
        import numpy as np

        nothing = (sums[f"{dimension}_asked"] > 0) & (sums[bottom] == 0)
        return np.where(nothing, 0.0, share(sums))

    return value


_MENDED = _Formulas(share=_plain_share, smooth=lambda _top, _bottom: None, f1=_plain_f1)
# The effect of the addition depends on the sample size; it is not an uncertainty of the model.
_RELEASED = _Formulas(share=_shifted_share, smooth=ratio, f1=_released_f1)


def _amber(chair: Value, f1: Value) -> Value:
    return lambda sums: (1 - chair(sums) + f1(sums)) / 2


def _hal(formulas: _Formulas) -> Value:
    """Return the share of hallucinating descriptions, as 1 minus the share of the others."""
    if formulas is not _RELEASED:
        return ratio("hallucinating", "descriptions")

    def value(sums: Sums) -> FloatArray:
        import numpy as np

        number = sums["descriptions"]
        result: FloatArray = 1 - (number - sums["hallucinating"]) / (number + _ADDED)
        return np.where(number > 0, result, np.nan)

    return value


_GENERATIVE = (
    ("chair", "hallucinated object words / object words", "hallucinated", "words"),
    ("cover", "objects that the descriptions name / objects of the images", "covered", "objects"),
    (
        "hal",
        "descriptions with a hallucinated object word / descriptions",
        "hallucinating",
        "descriptions",
    ),
    (
        "cog",
        "hallucination targets that the descriptions name / hallucination targets",
        "targets_said",
        "targets",
    ),
)


def _generative(formulas: _Formulas) -> tuple[ScoreDefinition, ...]:
    return tuple(
        ScoreDefinition(
            name=name,
            meaning=meaning,
            direction="higher" if name == "cover" else "lower",
            columns=(top, bottom),
            value=_hal(formulas) if name == "hal" else formulas.share(top, bottom, _ADDED),
            smooth=formulas.smooth(top, bottom),
            count=bottom,
        )
        for name, meaning, top, bottom in _GENERATIVE
    )


def _no_share(
    dimension: str, formulas: _Formulas, bottom: str, added: float
) -> tuple[Value, Value | None]:
    """Return the share of right no answers in a column, and the one for its interval."""
    top = f"{dimension}_right_no"
    share, smooth = formulas.share(top, bottom, added), formulas.smooth(top, bottom)
    if smooth is None:
        return share, None
    return _zero_without(dimension, bottom, share), _zero_without(dimension, bottom, smooth)


def _questions(dimension: str, formulas: _Formulas) -> tuple[ScoreDefinition, ...]:
    prefix = "" if dimension == "all" else f"{dimension}_"
    within = "" if dimension == "all" else f", {dimension} only"
    added = _ADDED * _COUNTS_ADDED.get(dimension, 1)
    right, asked, no, said_no, right_no = (
        f"{dimension}_{name}" for name in ("right", "asked", "no", "said_no", "right_no")
    )
    precision, smooth_precision = _no_share(dimension, formulas, said_no, added)
    recall, smooth_recall = _no_share(dimension, formulas, no, added)
    rows = (
        (
            "accuracy",
            "right answers / questions",
            (right, asked),
            formulas.share(right, asked, added),
            formulas.smooth(right, asked),
        ),
        (
            "precision",
            "right no answers / no answers",
            (right_no, said_no, asked),
            precision,
            smooth_precision,
        ),
        (
            "recall",
            "right no answers / questions whose answer is no",
            (right_no, no, asked),
            recall,
            smooth_recall,
        ),
        (
            "f1",
            "harmonic mean of precision and recall",
            (right_no, said_no, no, asked),
            formulas.f1(dimension),
            None if smooth_precision is None else _plain_f1(dimension),
        ),
    )
    return tuple(
        ScoreDefinition(
            name=f"{prefix}{name}",
            meaning=f"{meaning}{within}",
            direction="higher",
            columns=columns,
            value=value,
            smooth=smooth,
            count=asked,
        )
        for name, meaning, columns, value, smooth in rows
    )


def _scores(formulas: _Formulas) -> tuple[AnswerScore, ...]:
    generative = _generative(formulas)
    chair = generative[0]
    by_dimension = [_questions(dimension, formulas) for dimension in DIMENSIONS]
    f1 = by_dimension[0][3]
    amber = ScoreDefinition(
        name="amber_score",
        meaning="(1 - chair + f1) / 2",
        direction="higher",
        columns=(*chair.columns, *f1.columns),
        value=_amber(chair.value, f1.value),
        smooth=_amber(chair.smooth, f1.smooth) if chair.smooth and f1.smooth else None,
    )
    scores = (*generative, *(score for row in by_dimension for score in row), amber)
    made = (
        AnswerScore(
            definition=score,
            counts=tuple(_COUNTS[name] for name in score.columns),
            own=score.name == "accuracy",
        )
        for score in scores
    )
    return (*made, unparsed_rate("questions", "questions"))


PUBLISHED = _scores(_RELEASED)
"""The scores as the released script computes them."""
CORRECTED = _scores(_MENDED)
"""The scores without additions to denominators and without rounding."""
