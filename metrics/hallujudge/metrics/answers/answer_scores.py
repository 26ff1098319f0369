"""Counts of answers, and the five kinds of scores that are made of them.

A bundle is what a benchmark counts together: one answer, the two of a pair, all of a set. A count
is a number of a bundle; sums of counts give the scores.

=============  ====================================================================================
``share``      counted answers or groups / other ones
``all_right``  groups whose answers are all right / groups
``kept``       groups right under a base condition that stay right, or turn, under another
``mean``       plain mean of a share over the values of a field; None if a value has no answer
``combined``   a function of other scores, or of counts
=============  ====================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from msgspec import Struct, structs

from ..framework import columns_and_scores as framework
from ..framework.arrays import FloatArray
from ..framework.columns_and_scores import Direction, Ratio, ScoreDefinition, Sums, mean_of


class ReadAnswer(Struct, frozen=True, gc=False):
    """A parsed answer, as conditions see it."""

    name: str
    """Its name within the bundle, such as ``basic``; empty for the only answer."""
    value: str | None
    """The parsed answer; None if it could not be parsed, or is missing."""
    label: str
    """The right answer."""
    right: bool
    """Whether the variant counts it as right."""
    how: str
    """The parser, or its rule; why there is no answer, for a missing one."""
    unparsed: str = ""
    """What an unparsed answer counts as; empty for parsed and missing ones."""
    counted: bool = True
    """Whether it counts; missing answers and unparsed ones that are unscored do not."""
    fields: tuple[tuple[str, str], ...] = ()
    """The fields that the benchmark's counts look at."""
    elsewhere: tuple[str, bool] | None = None
    """What another variant parses where this one parses nothing, and whether that is right."""
    unsure: bool = False
    """Whether its words express uncertainty."""
    soft: bool = False
    """Whether it counts by its probability."""
    probability: float | None = None
    """Where it does: the judge's probability that it is right; None if it stated none. Elsewhere:
    what it adds to the right answers, if the parser says so."""

    def field(self, name: str) -> str:
        """Return the value of a field; empty without one."""
        return next((value for key, value in self.fields if key == name), "")

    def parsed_elsewhere(self) -> ReadAnswer:
        """Return the answer as another variant parses it, or as it is."""
        if self.elsewhere is None:
            return self
        value, right = self.elsewhere
        # What this variant's parser says of it is not true of the other one's.
        known = structs.replace(self, value=value, right=right, how="")
        return structs.replace(known, unparsed="", counted=True, elsewhere=None)


Condition: TypeAlias = "Callable[[ReadAnswer], bool]"
"""A test of an answer."""
Bundle: TypeAlias = "Sequence[ReadAnswer]"
"""The answers that count together."""


def is_right(answer: ReadAnswer) -> bool:
    """Return whether an answer is right."""
    return answer.right


def credit(answer: ReadAnswer) -> float:
    """Return what an answer adds to the right ones: 0, 1, or its probability or credit."""
    return answer.right if answer.probability is None else answer.probability


def is_any(_answer: ReadAnswer) -> bool:
    """Return True: every answer meets this condition."""
    return True


def named(name: str, also: Condition = is_any) -> Condition:
    """Return the condition that an answer has a name, and meets another condition."""
    return lambda answer: answer.name == name and also(answer)


class Count(Struct, frozen=True, kw_only=True):
    """A number of each bundle, whose sum is a column of the report's totals."""

    name: str
    """Name of the column."""
    meaning: str
    """Short description of what is counted."""
    of: Callable[[Bundle], float]
    """Returns the number of a bundle."""
    unread: bool = False
    """Whether bundles that are unscored because an answer could not be parsed count too."""
    integral: bool = True
    """Whether it is a whole number."""
    label: bool = False
    """Whether it encodes a value, such as an order of letters, so that sums mean nothing."""


def count(
    name: str,
    meaning: str,
    when: Callable[[ReadAnswer], float] = is_any,
    *,
    unread: bool = False,
    integral: bool = True,
) -> Count:
    """Return the count of answers that meet a condition.

    Args:
        name: Name of the column.
        meaning: Short description of what is counted.
        when: The condition, or what an answer adds.
        unread: Whether answers that could not be parsed count too.
        integral: Whether the count is a whole number.
    """

    def of(bundle: Bundle) -> float:
        return sum(when(a) for a in bundle if a.counted or (unread and a.unparsed))

    return Count(name=name, meaning=meaning, of=of, unread=unread, integral=integral)


def value_of(name: str, meaning: str, of: Callable[[ReadAnswer], float]) -> Count:
    """Return the column of a value of the first answer, whose sum means nothing."""
    return Count(name=name, meaning=meaning, of=lambda b: of(b[0]) if b else 0, label=True)


def count_groups(
    name: str,
    meaning: str,
    holds: Callable[[Bundle], bool] = bool,
    *,
    by: tuple[str, ...] = (),
    among: Condition = is_any,
    unread: bool = False,
) -> Count:
    """Return the count of groups of a bundle's answers that meet a test.

    A group with an answer that does not count is left out.

    Args:
        name: Name of the column.
        meaning: Short description of what is counted.
        holds: The test of a group.
        by: Fields whose values make the groups; without any the bundle is one group.
        among: The answers that are grouped.
        unread: Whether groups with an answer that could not be parsed count too.
    """

    def of(bundle: Bundle) -> int:
        number = 0
        # A loop takes half the time of generators, and bundles are many.
        for group in _groups(bundle, by, among):
            for answer in group:
                if not (answer.counted or (unread and answer.unparsed)):
                    break
            else:
                number += holds(group)
        return number

    return Count(name=name, meaning=meaning, of=of, unread=unread)


def _groups(
    bundle: Bundle, by: tuple[str, ...], among: Condition
) -> Iterable[Sequence[ReadAnswer]]:
    chosen = bundle if among is is_any else list(filter(among, bundle))
    if not by:
        # An empty group would be all right, and count.
        return [chosen] if chosen else []
    groups: dict[tuple[str, ...], list[ReadAnswer]] = {}
    for answer in chosen:
        groups.setdefault(tuple(map(answer.field, by)), []).append(answer)
    return groups.values()


def are_right(group: Bundle) -> bool:
    """Return whether all answers of a group are right."""
    return all(map(is_right, group))


class AnswerScore(Struct, frozen=True, kw_only=True):
    """A score with the counts that it is made of."""

    definition: ScoreDefinition
    """The score as a function of sums."""
    counts: tuple[Count, ...]
    """What the sums are of."""
    own: bool = False
    """Whether each bundle has a score of its own, in ``items.jsonl``."""
    over: str = ""
    """For a mean: the field of items over whose values it is."""
    values: tuple[str, ...] = ()
    """For a mean: those of the field that count."""


_Counts: TypeAlias = "Count | tuple[Count, ...]"


def share(
    name: str,
    meaning: str,
    of: _Counts,
    among: _Counts | str,
    *,
    direction: Direction = "higher",
    n: Count | None = None,
    bounded: bool = True,
    own: bool = False,
    unit: str = "fraction",
    high: float = 1.0,
) -> AnswerScore:
    """Return the score that is the ratio of two counts.

    Args:
        name: Name of the score.
        meaning: Short description of the score.
        of: A count, or several that are added up; a repeated one counts repeatedly.
        among: The same for the denominator, or the benchmark's unit, for all items.
        direction: Which end of the range is better.
        n: The count that is ``n``; None for the last one of the denominator.
        bounded: Whether best and worst cases exist.
        own: Whether each bundle has this score too.
        unit: Unit: ``fraction``, or the counted noun, such as ``points``.
        high: Upper limit of the score.
    """
    top, bottom = _tuple(of), () if isinstance(among, str) else _tuple(among)
    definition = framework.share(
        name,
        meaning,
        tuple(each.name for each in top),
        among if isinstance(among, str) else tuple(each.name for each in bottom),
        direction=direction,
        count=n.name if n is not None else "" if isinstance(among, str) else None,
        bounded=bounded,
    )
    definition = replace(definition, unit=unit, high=high)
    return AnswerScore(definition=definition, counts=_once((*top, *bottom)), own=own)


def accuracy(
    meaning: str = "right answers / answers",
    *,
    name: str = "accuracy",
    among: str = "answered",
) -> AnswerScore:
    """Return the share of right answers among those that the column ``among`` counts."""
    right, _, answers = meaning.partition(" / ")
    of = count("right", right, is_right), count(among, f"{answers} that count")
    return share(name, meaning, *of, own=True)


def noting(score: AnswerScore, *counts: Count) -> AnswerScore:
    """Return a score with counts that only notes look at."""
    return structs.replace(score, counts=(*score.counts, *counts))


def unparsed_rate(
    answers: str,
    meaning: str,
    *,
    name: str = "unparsed_rate",
    column: str = "unparsed",
    noun: str = "answers",
    among: Condition = is_any,
) -> AnswerScore:
    """Return the share of answers that could not be parsed.

    Args:
        answers: Column of the number of answers, parsed or not.
        meaning: Short description of this column.
        name: Name of the score.
        column: Column of the number of unparsed answers.
        noun: What could not be parsed, in the plural.
        among: The answers that count.
    """
    unparsed = f"{noun} that could not be parsed"
    return share(
        name,
        f"{unparsed} / {meaning.partition(' under')[0]}",
        count(column, unparsed, lambda a: bool(a.unparsed) and among(a), unread=True),
        count(answers, meaning, among, unread=True),
        direction="lower",
        bounded=False,
    )


def all_right(
    name: str,
    meaning: str,
    *,
    by: tuple[str, ...] = (),
    among: Condition = is_any,
    own: bool = False,
) -> AnswerScore:
    """Return the share of groups of answers that are all right.

    Args:
        name: Name of the score.
        meaning: Short description of the score.
        by: Fields whose values make the groups; without any the bundle is one group.
        among: The answers that are grouped.
        own: Whether each bundle has this score too.
    """
    right = count_groups(f"{name}_right", f"{name}: right groups", are_right, by=by, among=among)
    groups = count_groups(f"{name}_groups", f"{name}: groups", by=by, among=among)
    return share(name, meaning, right, groups, own=own)


def kept(
    name: str,
    meaning: str,
    base: Condition,
    under: Condition,
    *,
    by: tuple[str, ...] = (),
    turned: bool = False,
    names: tuple[str, str] | None = None,
    direction: Direction = "higher",
    bounded: bool = True,
    own: bool = False,
) -> AnswerScore:
    """Return the share of groups right under a base condition that stay right under another.

    Args:
        name: Name of the score.
        meaning: Short description of the score.
        base: The answers that must be right for a group to count.
        under: The answers that stay right or do not.
        by: Fields whose values make the groups; without any the bundle is one group.
        turned: Whether groups that do not stay right count instead.
        names: Columns of the groups that count, and of those right before.
        direction: Which end of the range is better.
        bounded: Whether best and worst cases exist.
        own: Whether each bundle has this score too.
    """

    def asked(group: Bundle) -> bool:
        before = [a for a in group if base(a)]
        # Nothing before would be all right; a condition that was not asked can't be kept.
        return bool(before) and are_right(before) and any(map(under, group))

    def stayed(group: Bundle) -> bool:
        return asked(group) and are_right([a for a in group if under(a)]) is not turned

    def either(answer: ReadAnswer) -> bool:
        return base(answer) or under(answer)

    above, below = names or (f"{name}_kept", f"{name}_asked")
    top = count_groups(above, f"{name}: that count", stayed, by=by, among=either)
    bottom = count_groups(below, f"{name}: right before", asked, by=by, among=either)
    return share(name, meaning, top, bottom, direction=direction, bounded=bounded, own=own)


def mean(score: AnswerScore, over: str, values: tuple[str, ...], what: str) -> AnswerScore:
    """Return ``mean_NAME`` of a share: its plain mean over the values of a field of items.

    Args:
        score: The share.
        over: The field.
        values: Its values; without an answer to one of them, the mean is None.
        what: The values in words, such as "the paper's five sets".
    """
    known, of = score.definition, score.definition.value
    assert isinstance(of, Ratio), "the mean is of a share"
    parts = [Ratio(_within(of.upper, value), _within(of.lower, value)) for value in values]
    columns = [column for part in parts for column in (*part.upper, *part.lower)]
    definition = replace(
        known,
        name=f"mean_{known.name}",
        meaning=f"{known.name}, mean over {what}",
        columns=tuple(dict.fromkeys(columns)),
        value=mean_of(*parts),
    )
    return AnswerScore(definition=definition, counts=score.counts, over=over, values=values)


def column_within(column: str, value: str) -> str:
    """Return the name of the column that counts the items with a value only."""
    return f"{column}:{value}"


def _within(columns: tuple[str, ...], value: str) -> tuple[str, ...]:
    return tuple(column_within(column, value) for column in columns)


def combined(
    name: str,
    meaning: str,
    function: Callable[..., FloatArray],
    of: tuple[AnswerScore | Count, ...],
    *,
    direction: Direction = "higher",
    n: Count | Literal[""] | None = None,
    bounded: bool = True,
    low: float = 0.0,
    high: float = 1.0,
) -> AnswerScore:
    """Return a function of other scores, or of counts.

    Args:
        name: Name of the score.
        meaning: Short description of the score.
        function: Function of the scores' values and the counts' sums.
        of: The scores and counts.
        direction: Which end of the range is better.
        n: The count that is ``n``, or empty for all items; None for that of the first score.
        bounded: Whether the function's best and worst cases are those of the scores.
        low: Lower limit of the score.
        high: Upper limit of the score.
    """
    scores = [_sum_of(each) if isinstance(each, Count) else each for each in of]

    def value(sums: Sums) -> FloatArray:
        return function(*(score.definition.value(sums) for score in scores))

    def smooth(sums: Sums) -> FloatArray:
        known = (score.definition for score in scores)
        return function(*((each.smooth or each.value)(sums) for each in known))

    definition = ScoreDefinition(
        name=name,
        meaning=meaning,
        direction=direction,
        columns=tuple(dict.fromkeys(c for score in scores for c in score.definition.columns)),
        value=value,
        smooth=smooth if any(score.definition.smooth for score in scores) else None,
        count=scores[0].definition.count if n is None else n.name if n else "",
        bounded=bounded,
        low=low,
        high=high,
    )
    return AnswerScore(
        definition=definition, counts=_once(tuple(c for score in scores for c in score.counts))
    )


def _sum_of(counted: Count) -> AnswerScore:
    """Return the sum of a count, as a score that others are made of."""
    name = counted.name
    return AnswerScore(
        definition=ScoreDefinition(name=name, columns=(name,), value=lambda sums: sums[name]),
        counts=(counted,),
    )


def average(
    name: str,
    meaning: str,
    of: Sequence[AnswerScore],
    *,
    n: Count | Literal[""] | None = None,
    direction: Direction = "higher",
    bounded: bool = True,
) -> AnswerScore:
    """Return the plain mean of other scores, which is None if one of them is.

    Args:
        name: Name of the score.
        meaning: Short description of the score.
        of: The scores.
        n: The count that is ``n``, or empty for all items, as where the scores are of different
            ones; None for that of the first score.
        direction: Which end of the range is better.
        bounded: Whether the best and worst cases are those of the scores.
    """

    def value(*values: FloatArray) -> FloatArray:
        return sum(values[1:], values[0]) / len(values)

    # The count of n may be none that the averaged scores are made of, as in INFACT.
    more = (n,) if n else ()
    made = combined(name, meaning, value, tuple(of), direction=direction, n=n, bounded=bounded)
    return structs.replace(made, counts=_once((*made.counts, *more)))


def _tuple(counts: _Counts) -> tuple[Count, ...]:
    return counts if isinstance(counts, tuple) else (counts,)


def _once(counts: tuple[Count, ...]) -> tuple[Count, ...]:
    return tuple({each.name: each for each in counts}.values())
