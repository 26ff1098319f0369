"""What a bundle that is not scored would count at best and at worst."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from ..framework.columns_and_scores import Column, Ratio
from .answer_scores import Bundle, Count, ReadAnswer
from .closed_questions import Answer, ClosedQuestions

ENDS = ("worst", "best")
"""The ends of a score's bounds."""


_Ends: TypeAlias = "tuple[Mapping[str, float], Mapping[str, float]]"


def ends_of(declared: ClosedQuestions, counts: Sequence[Count]) -> _Ends:
    """Return the worst and the best columns of a bundle: those of the trial item, if they suffice.

    Scores of some kinds of questions, such as those with the label no, are not about the trial
    item: then each ratio gets its limits, and no count may be part of two of them.
    """
    ends = _ends_of_trial(declared, counts)
    return ends if _limits_all(declared, ends) else _ends_of_ratios(declared)


def _ends_of_trial(declared: ClosedQuestions, counts: Sequence[Count]) -> _Ends:
    answers = declared.trial.answers
    best = _columns(counts, [decided(answer, answer.label, right=True) for answer in answers])
    # A wrong yes lowers one score and a wrong no another: each score's bound uses the worse one.
    wrong = [
        _columns(counts, [decided(answer, label, right=False) for answer in answers])
        for label in declared.labels or (answers[0].label,)
    ]
    return {name: max(row[name] for row in wrong) for name in best}, best


def decided(answer: Answer | ReadAnswer, label: str, *, right: bool) -> ReadAnswer:
    """Return an answer as if it were parsed, and right or wrong by a label."""
    value = label if right else {"yes": "no", "no": "yes"}.get(label)
    fields = answer.fields if isinstance(answer, ReadAnswer) else tuple(answer.fields.items())
    return ReadAnswer(answer.name, value, label, right, "", fields=fields)


def _columns(counts: Sequence[Count], bundle: Bundle) -> dict[str, float]:
    return {each.name: float(each.of(bundle)) for each in counts}


def _ratios(declared: ClosedQuestions) -> Iterator[tuple[Ratio, bool]]:
    """Yield the ratios that have bounds, and whether a higher value is better."""
    for score in declared.scores:
        known = score.definition
        if known.bounded and isinstance(known.value, Ratio):
            yield known.value, known.direction == "higher"


def _limits_all(declared: ClosedQuestions, ends: _Ends) -> bool:
    """Return whether each ratio of a bundle's counts is 0 at one end, and is not at the other."""
    for ratio, up in _ratios(declared):
        for columns, good in zip(ends, (False, True), strict=True):
            held = {declared.unit: 1.0, **columns}
            # Others are made from whole tables, which one bundle says nothing of.
            if not held.keys() >= {*ratio.upper, *ratio.lower}:
                continue
            if not any(map(held.get, ratio.lower)) or any(map(held.get, ratio.upper)) != (
                good is up
            ):
                return False
    return True


def _ends_of_ratios(declared: ClosedQuestions) -> _Ends:
    worst: dict[str, float] = {}
    best: dict[str, float] = {}
    for ratio, up in _ratios(declared):
        for ends, good in ((worst, False), (best, True)):
            ends |= dict.fromkeys(ratio.lower, 1.0)
            ends |= dict.fromkeys(ratio.upper, float(good is up))
    return worst, best


def open_columns_of(benchmark: ClosedQuestions, counts: Sequence[Count]) -> tuple[str, ...]:
    """Return the columns that answers of a partial bundle which do not count could change.

    They are those of the scores that have bounds, in the order of all columns; none where each
    ratio has limits of its own, which such answers do not widen.
    """
    if not benchmark.bundle.partial or not _limits_all(
        benchmark, _ends_of_trial(benchmark, counts)
    ):
        return ()
    names = {
        each.name for score in benchmark.scores if score.definition.bounded for each in score.counts
    }
    ordered = (each.name for score in benchmark.scores for each in score.counts)
    return tuple(dict.fromkeys(name for name in ordered if name in names))


def end_columns(counts: Mapping[str, Count], names: Sequence[str]) -> list[Column]:
    """Return the columns of what some counts are at their worst and at their best."""
    return [
        Column(
            name=f"{name}@{end}",
            meaning=f"{name} at its {end}",
            integral=counts[name].integral,
            label=True,
        )
        for end in ENDS
        for name in names
    ]
