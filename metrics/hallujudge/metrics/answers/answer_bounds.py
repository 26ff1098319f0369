"""What a bundle that is not scored would count at best and at worst."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..framework.columns_and_scores import Column, Ratio
from .answer_scores import Bundle, Count, ReadAnswer
from .closed_questions import Answer, ClosedQuestions

ENDS = ("worst", "best")
"""The ends of a score's bounds."""


def ends_of(
    declared: ClosedQuestions, counts: Sequence[Count]
) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """Return the worst and the best columns of a bundle."""
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


def ends_of_ratios(declared: ClosedQuestions) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """Return the worst and the best columns of a bundle, with one answer for each ratio."""
    worst: dict[str, float] = {}
    best: dict[str, float] = {}
    for score in declared.scores:
        known = score.definition
        if known.bounded and isinstance(known.value, Ratio):
            for ends, good in ((worst, False), (best, True)):
                ends |= dict.fromkeys(known.value.lower, 1.0)
                ends |= dict.fromkeys(
                    known.value.upper, float(good is (known.direction == "higher"))
                )
    return worst, best


def open_columns_of(benchmark: ClosedQuestions) -> tuple[str, ...]:
    """Return the columns that answers of a partial bundle which do not count could change.

    They are those of the scores that have bounds, in the order of all columns.
    """
    if not benchmark.bundle.partial or benchmark.bounds == "ratios":
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
