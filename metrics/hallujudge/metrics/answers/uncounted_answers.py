"""Answers that do not count, or count as missing ones: what they would add to a score.

An answer that a run's parser cannot parse may be one that another parser can: that of another
variant, or another value of an option. Statistics of an item say how many such answers it has, and
what they would add to the main score's numerator and denominator. A report notes them if they are
at least 1 % of the answers. Where missing answers count, statistics also say what of the main
score's counts is theirs, for a note. The bounds of a score have a bundle that is not scored at its
worst and at its best.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from msgspec import Struct, structs

from ..framework.arrays import np
from ..framework.columns_and_scores import Column, Ratio
from .answer_scores import Bundle, Count, ReadAnswer, count
from .closed_questions import Answer, AnswerParser, AnswerVariant, ClosedQuestions

READ, ABOVE, BELOW = "read_elsewhere", "above_elsewhere", "below_elsewhere"
"""The columns of answers that only another variant parses, and what they would add to the score's
numerator and denominator."""
RESPONSES = "responses"
"""The column of parsed and unparsed answers, in benchmarks whose bundles have several."""
MISSING = "missing"
"""How missing answers were parsed."""
ENDS = ("worst", "best")
"""The ends of a score's bounds."""
_Ends: TypeAlias = "tuple[dict[str, float], dict[str, float]]"
_NO_ANSWERS = ("", "Unknown.")
# Fewer are no news.
_NOTED_SHARE = 0.01


class NamedParser(NamedTuple):
    """An answer parser that a user can choose."""

    name: str
    """Name of the variant, or value of the option."""
    parse: AnswerParser
    """The parser."""
    choice: str
    """What chooses it, in the words of a message."""


class OtherParsers(Struct, frozen=True, kw_only=True):
    """The answer parsers of a benchmark, seen from one of them."""

    parsers: tuple[NamedParser, ...]
    """Those that can tell an answer from other text, the last one first."""
    names: frozenset[str]
    """The names of all."""
    is_lax: bool = False
    """Whether the parser that they are seen from takes any text for an answer. Then an answer that
    the first other one parses as another value counts as not parsed."""
    score: str
    """The score whose value with their answers is noted: the main one, if it is a ratio. Empty if
    no score is one; the answers are noted all the same."""
    ratio: Ratio | None
    """The columns that it is the ratio of."""
    unit: str
    """The unit, whose sum is the number of answers where bundles have one each."""
    counts_answers: bool
    """Whether bundles have several answers."""
    integral: bool
    """Whether what answers add to the score's columns are whole numbers."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The statistics of an item."""
        responses = Column(name=RESPONSES, meaning="answers that there are, parsed or not")
        return (
            *((responses,) if self.counts_answers else ()),
            Column(name=READ, meaning="answers that only another parser can parse"),
            *(
                Column(
                    name=name,
                    meaning=f"what these would add to the {side} of {self.score}",
                    integral=self.integral,
                    # Another parser may find fewer right answers than this one.
                    signed=True,
                )
                for name, side in ((ABOVE, "numerator"), (BELOW, "denominator"))
                if self.ratio is not None
            ),
        )

    def seen_from(self, name: str) -> OtherParsers:
        """Return those that parse other than one of them; none for a value that is not a parser."""
        own = [each.parse for each in self.parsers if each.name == name]
        others = tuple(each for each in self.parsers if each.parse not in own)
        is_lax = not own
        # A lax parser takes any text, so that only the strictest other one says something new.
        others = others[: 1 if is_lax else None] if name in self.names else ()
        return structs.replace(self, parsers=others, is_lax=is_lax)

    def parsed(self, answer: Answer, value: str | None) -> tuple[str, bool] | None:
        """Return what the first parser that can parse an answer makes of it, and if it is right.

        Args:
            answer: The answer.
            value: What the run's own parser makes of it.

        Returns:
            None if no parser can, or if the own one can and takes no other text for an answer.
        """
        # Most answers begin with what they are parsed as, which no second parser need confirm.
        begins = value is not None and (answer.response or "")[: len(value)].lower() == value
        if value is not None and (begins or not self.is_lax):
            return None
        found = (each.parse(answer) for each in self.parsers)
        first = next(((p.value, p.right) for p in found if p.value is not None), None)
        return None if first is None or first[0] == value else first

    def statistics(
        self,
        bundle: Bundle,
        row: Sequence[float],
        counts: Sequence[Count],
        row_of: Callable[[Bundle], Sequence[float]],
    ) -> tuple[float, ...]:
        """Return a bundle's statistics.

        Args:
            bundle: The answers.
            row: The numbers of the counts.
            counts: The counts.
            row_of: Returns the numbers of the counts of other answers.
        """
        given = sum(answer.counted or bool(answer.unparsed) for answer in bundle)
        first = (given,) if self.counts_answers else ()
        read = sum(answer.elsewhere is not None for answer in bundle)
        if self.ratio is None:
            return (*first, read)
        if not read:
            return (*first, 0, 0, 0)
        changed = row_of([answer.parsed_elsewhere() for answer in bundle])
        names = (each.name for each in counts)
        more = {name: b - a for name, a, b in zip(names, row, changed, strict=True)}
        above, below = (
            sum(more.get(name, 0) for name in side) for side in (self.ratio.upper, self.ratio.lower)
        )
        return (*first, read, above, below)

    def notes(self, own: str, totals: Mapping[str, float]) -> tuple[str, ...]:
        """Return how many answers only the others parse, and the score with them.

        Args:
            own: Name of the run's parser.
            totals: The sums of all columns.
        """
        read = totals.get(READ, 0)
        answers = totals[RESPONSES if self.counts_answers else self.unit] if read else 0
        # A stored run may hold any numbers.
        if not read or not answers or not self.parsers or read < _NOTED_SHARE * answers:
            return ()
        names = " or ".join(each.name for each in self.parsers)
        share = f"{read:,.0f} of {answers:,.0f} answers ({read / answers:.1%})"
        found = f"Unparsed: {names} can parse {share} that {own} can't"
        if self.is_lax:
            found = f"{own} takes any text for an answer, and {names} parses {share} otherwise"
        return (f"{found}{self._effect(totals)}. Compare with {self.parsers[0].choice}.",)

    def _effect(self, totals: Mapping[str, float]) -> str:
        if self.ratio is None:
            return ""
        sides = (self.ratio.upper, self.ratio.lower)
        above, below = (sum(map(totals.__getitem__, side)) for side in sides)
        then, now = _quotient(above + totals[ABOVE], below + totals[BELOW]), _quotient(above, below)
        if then == now:
            return f", which leaves {self.score} at {now}"
        return f"; with them {self.score} is {then}, not {now}"


def _quotient(above: float, below: float) -> str:
    return f"{above / below:.4f}" if below else "undefined"


# A sentence of a thought, or a line.
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")


def disagrees(parse: AnswerParser, answer: Answer, thought: str) -> bool | None:
    """Return whether a thought's last clear answer, by its sentences, is another one.

    Args:
        parse: A parser that can tell an answer from other text.
        answer: The answer.
        thought: What came before it.

    Returns:
        None if one of the two has no clear answer.
    """
    said = None if answer.response is None else parse(answer).value
    if said is None:
        return None
    sentences = (text.strip() for text in reversed(_SENTENCE.findall(thought)))
    values = (parse(structs.replace(answer, response=text)).value for text in sentences)
    last = next((value for value in values if value is not None), None)
    return None if last is None else last != said


def other_parsers(benchmark: ClosedQuestions, chosen: Sequence[NamedParser]) -> OtherParsers | None:
    """Return the answer parsers that users of a benchmark choose among; None if all parse alike.

    A parser that parses an empty response, as a yes for example, or the word "unknown", as a no by
    its letters, can't tell an answer from other text, and is left out.
    """
    first = benchmark.trial.answers[0]
    # A verdict in the files is what is parsed of a judged answer.
    judged = benchmark.judged is not None and benchmark.verdict in first.fields
    verdict = benchmark.verdict if judged else ""
    no_answers = [
        structs.replace(
            first,
            response=text,
            fields={**first.fields, verdict: text} if verdict else first.fields,
        )
        for text in _NO_ANSWERS
    ]
    known = [
        each
        # Variants end with the strictest parser, which is asked first.
        for each in reversed(chosen)
        if all(each.parse(other).value is None for other in no_answers)
    ]
    if not known or len({each.parse for each in chosen}) == 1:
        return None
    main = [each for each in benchmark.scores if each.definition.name == benchmark.main_score]
    # Answers that are parsed only lower a rate such as that of unparsed ones.
    others = [each for each in benchmark.scores if each.definition.direction != "lower"]
    ratios = (each for each in (*main, *others) if isinstance(each.definition.value, Ratio))
    score = next(ratios, None)
    ratio = None if score is None else score.definition.value
    return OtherParsers(
        names=frozenset(each.name for each in chosen),
        parsers=tuple(known),
        score="" if score is None else score.definition.name,
        ratio=ratio if isinstance(ratio, Ratio) else None,
        unit=benchmark.unit,
        counts_answers=not benchmark.alone,
        integral=score is None or all(each.integral for each in score.counts),
    )


def how_parsed(variant: AnswerVariant, answer: Answer, value: str | None) -> str:
    """Return how an answer was parsed that is missing and counts; empty for others."""
    is_missing = value is None and not (answer.response or "").strip()
    return MISSING if is_missing and variant.missing != "unscored" else ""


def missing_counts(benchmark: ClosedQuestions) -> tuple[Count, ...]:
    """Return the counts of missing answers, where a variant counts them; else none."""
    if all(each.missing == "unscored" for each in benchmark.variants):
        return ()

    def of_missing(known: Count) -> Count:
        return structs.replace(
            known,
            name=f"{known.name}@{MISSING}",
            meaning=f"{known.name} of {benchmark.unit} with a missing answer",
            of=lambda bundle: known.of(bundle) if any(a.how == MISSING for a in bundle) else 0,
        )

    [main] = (s for s in benchmark.scores if s.definition.name == benchmark.main_score)
    meaning = "answers that are missing, empty or failure texts"
    return (
        count("missing_answers", meaning, lambda a: a.how == MISSING),
        *map(of_missing, main.counts),
    )


def missing_note(
    benchmark: ClosedQuestions, variant: str, totals: Mapping[str, float]
) -> tuple[str, ...]:
    """Return how many missing answers count, and the main score without them.

    Args:
        benchmark: The benchmark.
        variant: The variant of the run.
        totals: The sums of all columns.
    """
    if not (missing := totals.get("missing_answers", 0)):
        return ()
    [main] = (s.definition for s in benchmark.scores if s.definition.name == benchmark.main_score)
    sums = {name: np.array([totals[name]]) for name in main.columns}
    others = {name: each - totals[f"{name}@{MISSING}"] for name, each in sums.items()}
    [value], [then] = main.value(sums), main.value(others)
    # NaN is a score of no item.
    shown = [f"{each:.4f}" if each == each else "undefined" for each in (then, value)]
    return (
        f"{missing:,.0f} answers are missing, empty or failure texts, which {variant} counts as it "
        f"counts unparsed ones; without their {benchmark.unit} {main.name} is {shown[0]}, "
        f"not {shown[1]}",
    )


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
