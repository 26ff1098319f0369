"""What a bundle that is not scored would count at best and at worst."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from ..framework.columns_and_scores import Column, Ratio
from .answer_scores import Bundle, Count, ReadAnswer
from .closed_questions import Answer, ClosedQuestions

ENDS = ("worst", "best")
"""The ends of a score's bounds."""


_Ends: TypeAlias = "tuple[dict[str, float], dict[str, float]]"


def ends_of(declared: ClosedQuestions, counts: Sequence[Count]) -> _Ends:
    """Return the worst and the best columns of a bundle: those of the trial item.

    Scores of other questions, such as those with the label no, are not about the trial item: the
    columns of ratios that it does not take to their limits are at these limits.
    """
    ends = _ends_of_trial(declared, counts)
    ratios = list(_ratios(declared, counts))
    limited = [_columns_of(ratio) for ratio, up in ratios if _limits(ratio, ends, up=up)]
    known = set().union(*limited)
    for ratio, up in ratios:
        for columns, good in zip(ends, (False, True), strict=True):
            limits = dict.fromkeys(ratio.lower, 1.0)
            limits |= dict.fromkeys(ratio.upper, float(good is up))
            columns |= {name: end for name, end in limits.items() if name not in known}
    return ends


def _ends_of_trial(declared: ClosedQuestions, counts: Sequence[Count]) -> _Ends:
    answers = declared.trial.answers
    best = _row(counts, [decided(answer, answer.label, right=True) for answer in answers])
    # A wrong yes lowers one score and a wrong no another: each score's bound uses the worse one.
    wrong = [
        _row(counts, [decided(answer, label, right=False) for answer in answers])
        for label in declared.labels or (answers[0].label,)
    ]
    worst = {name: max(row[name] for row in wrong) for name in best}
    return {declared.unit: 1.0, **worst}, {declared.unit: 1.0, **best}


def _ratios(declared: ClosedQuestions, counts: Sequence[Count]) -> Iterator[tuple[Ratio, bool]]:
    """Yield the ratios of counts that have bounds, and whether a higher value is better."""
    known = {declared.unit, *(each.name for each in counts)}
    for score in declared.scores:
        found = score.definition
        # Columns that are made from whole tables have no ends of one bundle.
        if found.bounded and isinstance(found.value, Ratio) and _columns_of(found.value) <= known:
            yield found.value, found.direction == "higher"


def _columns_of(ratio: Ratio) -> set[str]:
    return {*ratio.upper, *ratio.lower}


def _limits(ratio: Ratio, ends: _Ends, *, up: bool) -> bool:
    """Return whether a ratio is 0 at its low end, and has a value above 0 at the other."""
    return all(
        any(map(columns.get, ratio.lower)) and any(map(columns.get, ratio.upper)) is (good is up)
        for columns, good in zip(ends, (False, True), strict=True)
    )


def decided(answer: Answer | ReadAnswer, label: str, *, right: bool) -> ReadAnswer:
    """Return an answer as if it were parsed, and right or wrong by a label."""
    value = label if right else {"yes": "no", "no": "yes"}.get(label)
    fields = answer.fields if isinstance(answer, ReadAnswer) else tuple(answer.fields.items())
    return ReadAnswer(answer.name, value, label, right, "", fields=fields)


def _row(counts: Sequence[Count], bundle: Bundle) -> dict[str, float]:
    return {each.name: float(each.of(bundle)) for each in counts}


def open_columns_of(benchmark: ClosedQuestions, counts: Sequence[Count]) -> tuple[str, ...]:
    """Return the columns that answers of a partial bundle which do not count could change.

    They are those of the scores that have bounds, in the order of all columns; none where one of
    these scores is about questions of another kind than the trial item's.
    """
    ends = _ends_of_trial(benchmark, counts) if benchmark.partial else ()
    if not ends or not all(
        any(columns.get(name) for columns in ends for name in ratio.lower)
        for ratio, _ in _ratios(benchmark, counts)
    ):
        return ()
    names = {
        each.name for score in benchmark.scores if score.definition.bounded for each in score.counts
    }
    ordered = (each.name for score in benchmark.scores for each in score.counts)
    return tuple(dict.fromkeys(name for name in ordered if name in names))


def open_row(
    counts: Sequence[Count], names: Sequence[str], bundle: Bundle, *, readable: bool
) -> tuple[float, ...]:
    """Return how many answers do not count, and some columns if they were wrong, or right."""
    if not readable:
        return (0,) * (1 + len(ENDS) * len(names))
    missing = sum(not answer.counted for answer in bundle)
    ends: list[float] = []
    for right in (False, True):
        known = [a if a.counted else decided(a, a.label, right=right) for a in bundle]
        ends += [each.of(known) for each in counts if each.name in names]
    return (missing, *ends)


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
