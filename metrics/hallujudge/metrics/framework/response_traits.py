"""What a run's responses have beside their answers: thoughts, tokens of templates, refusals, cuts.

An item's traits are numbers by name, which add up like statistics. A report names them in its
notes, with what they change, and its signature says what was left out.

A metric can also score what models think as it scores what they say. Each item of
:func:`with_thought_scores` has the statistics of its answer, those of its thought, and those of its
answer again if it has a scored thought. The difference of two scores is thus paired: both are over
the same items. No script was released that does this.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, cast

from msgspec import structs

from .arrays import FloatArray, np
from .columns_and_scores import Column, ScoreDefinition, Sums, score_at, share
from .metric import Metric
from .results import ItemResult, Outcome
from .signature import TEMPLATE, THOUGHTS

THOUGHT, UNFINISHED, WORDS, FORM = "thought", "unfinished", "thought_words", "form "
"""Responses with a thought; thoughts without an end; words of thoughts; before a form's name."""
TOKENS, PROMPT = "tokens", "prompt"
"""Responses of which tokens of a template, or a repeated prompt, were left out."""
REFUSAL, CUT, DROPPED = "refusal", "cut", "dropped"
"""Refusals; responses without an end of sentence; those whose last sentence was left out."""

LEFT_OUT, KEPT, SCORED = "leave-out", "keep", "score"
"""What happens to thoughts."""
_VERBS = {LEFT_OUT: "left-out", KEPT: "kept", SCORED: "scored"}
# Fewer cut sentences are no sign of a token limit.
_NOTED_SHARE = 0.01
# A note names so many scores.
_NAMED_SCORES = 4


class TraitSums:
    """Sums of traits over items, in any order and any number of parts.

    Args:
        metric: The metric.
    """

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._counts: Counter[str] = Counter()
        # The first number is that of scored items, the column of the unit.
        size = 1 + len(metric.columns)
        # What the whole responses would add to the sums, and what refusals add to them.
        self._kept: list[float] = [0.0] * size
        self._refused: list[float] = [0.0] * size

    @property
    def counts(self) -> Mapping[str, float]:
        """The sums by trait, sorted by name; empty for a run without any."""
        return dict(sorted(self._counts.items()))

    def add(self, results: Iterable[ItemResult]) -> None:
        """Add items that have traits."""
        for result in results:
            self._counts.update(result.traits)
            own = _row(result)
            # The difference that keeping thoughts makes: the whole response in, the answer out.
            if result.kept:
                _add(self._kept, (1.0, *result.kept))
                _add(self._kept, [-number for number in own])
            if result.traits.get(REFUSAL):
                _add(self._refused, own)

    def merge(self, other: TraitSums) -> None:
        """Add the sums of another part."""
        self._counts.update(other._counts)
        _add(self._kept, other._kept)
        _add(self._refused, other._refused)

    def to_json(self) -> dict[str, Any]:
        """Return the sums for :meth:`of`; empty without any."""
        if not self._counts:
            return {}
        return {"counts": self._counts, "kept": self._kept, "refused": self._refused}

    @classmethod
    def of(cls, metric: Metric, values: Mapping[str, Any]) -> TraitSums:
        """Return the sums of what :meth:`to_json` returned.

        Raises:
            ValueError: They have another number of columns than the metric.
        """
        made = cls(metric)
        if values:
            made._counts = Counter(values["counts"])
            for mine, theirs in ((made._kept, values["kept"]), (made._refused, values["refused"])):
                if len(mine) != len(theirs):
                    raise ValueError(f"sums of {len(theirs)} columns, not {len(mine)}")
                _add(mine, theirs)
        return made

    def fields(self) -> tuple[tuple[str, str], ...]:
        """Return what the signature says was left out of the responses, or scored apart."""
        counts, mode = self._counts, self._metric.thoughts or LEFT_OUT
        marks = f",marks={self._metric.thought_marks}" if self._metric.thought_marks else ""
        thoughts = ((THOUGHTS, _VERBS[mode] + marks),) if counts[THOUGHT] else ()
        template = ((TEMPLATE, "left-out"),) if counts[TOKENS] or counts[PROMPT] else ()
        return (*thoughts, *template)

    def notes(self, totals: Mapping[str, float], items: int) -> Iterator[str]:
        """Yield a sentence about each trait.

        Args:
            totals: The sums that the scores are computed from.
            items: The number of items.
        """
        counts, unit = self._counts, self._metric.unit
        if counts[THOUGHT]:
            yield self._thought_note(totals)
        if counts[UNFINISHED]:
            yield (
                f"{_responses(counts[UNFINISHED], 'has', 'have')} a thought without an end, and no "
                "answer; ask again with a larger limit of tokens."
            )
        if counts[TOKENS] or counts[PROMPT]:
            yield self._template_note()
        if counts[REFUSAL]:
            without = self._scores(totals, self._refused, -1.0)
            effect = f"; without refusals {without}" if without else ""
            yield f"{_responses(counts[REFUSAL], 'is a refusal', 'are refusals')}{effect}."
        if counts[CUT] and counts[CUT] >= _NOTED_SHARE * items:
            then = "; the option drop_cut_sentence leaves the unfinished sentence out"
            if counts[DROPPED]:
                then = "; the unfinished sentences are left out"
            ends = "end" if counts[CUT] > 1 else "ends"
            yield (
                f"{counts[CUT]:,} of {items:,} {unit} {ends} without an end of sentence, as a "
                f"limit of tokens leaves them{then}."
            )

    def _thought_note(self, totals: Mapping[str, float]) -> str:
        counts, mode = self._counts, self._metric.thoughts or LEFT_OUT
        forms = ", ".join(
            f"{name.removeprefix(FORM)} {count:,}"
            for name, count in sorted(counts.items())
            if name.startswith(FORM)
        )
        mean = counts[WORDS] / counts[THOUGHT]
        what = {
            LEFT_OUT: "left out",
            KEPT: "kept, and scored with the answer",
            SCORED: "left out, and scored apart",
        }[mode]
        kept = self._scores(totals, self._kept, 1.0)
        effect = f"; with the option thoughts = keep {kept}" if kept else ""
        thoughts = "the thought is" if counts[THOUGHT] == 1 else "thoughts are"
        return (
            f"{_responses(counts[THOUGHT], 'has', 'have')} a thought ({forms}; {mean:,.0f} words "
            f"on average); {thoughts} {what}{effect}."
        )

    def _template_note(self) -> str:
        counts = self._counts
        parts = []
        if counts[TOKENS]:
            parts.append(f"tokens of a chat template in {_responses(counts[TOKENS])}")
        if counts[PROMPT]:
            parts.append(f"a repeated prompt in {_responses(counts[PROMPT])}")
        return f"Left out: {' and '.join(parts)} (the option template_tokens = keep scores them)."

    def _scores(self, totals: Mapping[str, float], change: Sequence[float], sign: float) -> str:
        """Return the scores that a change of the sums changes; empty if none can be computed."""
        metric = self._metric
        # Such metrics make columns from whole tables, which sums alone do not give.
        plain = not (metric.overrides("derive") or metric.overrides("expand"))
        if not plain or metric.repeated_by or not any(change):
            return ""
        names = (metric.unit, *(column.name for column in metric.columns))
        then = {
            name: totals.get(name, 0.0) + sign * number
            for name, number in zip(names, change, strict=True)
        }
        # Totals lack columns of labels, whose sum has no meaning.
        now = {**dict.fromkeys(then, 0.0), **totals}
        shown = metric.headline or tuple(score.name for score in metric.scores)
        parts: list[str] = []
        for score in metric.scores:
            if score.name in shown and all(name in then for name in score.columns):
                text = _compared(_value(score, now), _value(score, then))
                if text and len(parts) < _NAMED_SCORES:
                    parts.append(f"{score.name} is {text}")
        return ", ".join(parts)


def _value(score: ScoreDefinition, numbers: Mapping[str, float]) -> float:
    # A score of nothing is undefined, and "undefined" is what the note says.
    with np.errstate(all="ignore"):
        return score_at(score, numbers)


def _compared(now: float, other: float) -> str:
    texts = ["undefined" if math.isnan(number) else f"{number:.4f}" for number in (other, now)]
    return f"{texts[0]}, not {texts[1]}" if texts[0] != texts[1] else ""


def _responses(count: float, one: str = "", more: str = "") -> str:
    noun, verb = ("response", one) if count == 1 else ("responses", more)
    return f"{count:,} {noun} {verb}".rstrip()


def _row(result: ItemResult) -> tuple[float, ...]:
    """Return what an item adds to the sums: its count, and its statistics."""
    if not result.statistics:
        return ()
    return (float(result.outcome is Outcome.SCORED), *result.statistics)


def _add(sums: list[float], numbers: Iterable[float]) -> None:
    for at, number in enumerate(numbers):
        sums[at] += number


_OF_THOUGHT, _PAIRED = "thought_", "paired_"
"""Before the names of columns: of thoughts, and of answers that have a scored thought."""
_DIFFERENCE = "_difference"
"""After the name of a score of thoughts: minus the same score of their answers."""
_CLEAR, _DISAGREEMENTS = "thought_answers", "thought_disagreements"
"""The columns of closed questions whose thought comes to a clear answer, and to another one."""
_DISAGREEMENT = "thought_disagreement"
"""The score of closed questions."""


def with_thought_scores(metric: Metric) -> Metric:
    """Return the metric with scores of thoughts, and the same scores of answers as before."""
    return _remade(metric, _class_with_thoughts(cast("Any", type(metric))))


def definitions_with_thoughts(kind: type[Metric]) -> tuple[ScoreDefinition, ...]:
    """Return the definitions of all scores of a metric's runs, those of thoughts included."""
    return _class_with_thoughts(cast("Any", kind)).score_definitions


def without_thought_scores(metric: Metric) -> Metric:
    """Return the metric of the answers alone, whose columns come first."""
    if not isinstance(metric, _ThoughtScores):
        return metric
    # The first base is _ThoughtScores, and the second one the metric's own class.
    return _remade(metric, type(metric).__bases__[1])


def _remade(metric: Metric, kind: Callable[..., Metric]) -> Metric:
    return kind(**{each.name: getattr(metric, each.name) for each in fields(metric) if each.init})


def scores_texts(metric: Metric | type[Metric]) -> bool:
    """Return whether a metric has scores of texts, which a thought can have too."""
    return metric.text_scores is None or bool(metric.text_scores)


def _is_closed(metric: Metric | type[Metric]) -> bool:
    # By what it has: the framework imports nothing of answers, where the class is.
    return hasattr(metric, "benchmark")


def with_thought(
    metric: Metric, answer: ItemResult, thought: ItemResult | None, disagrees: bool | None
) -> ItemResult:
    """Return the result of an answer with what its thought adds to it.

    Args:
        metric: What :func:`with_thought_scores` returned.
        answer: The result of the answer.
        thought: The result of the thought, as if it were the response; None without a thought.
        disagrees: Whether the thought's last clear answer is another one; None without two clear
            answers.
    """
    # An answer that is unscored, or left out, has nothing to pair its thought with.
    if not answer.statistics:
        return structs.replace(answer, thought=thought)
    more: list[float] = []
    scores = dict(answer.scores)
    if scores_texts(metric):
        if thought is not None and _is_scored(answer) and _is_scored(thought):
            more += [1, *thought.statistics, *answer.statistics]
            scores |= {f"{_OF_THOUGHT}{name}": value for name, value in thought.scores.items()}
        else:
            # Rows of a table have one length, and zeros change no sum.
            more += [0] * (1 + 2 * len(answer.statistics))
    if _is_closed(metric):
        more += [int(disagrees is not None), int(bool(disagrees))]
        if disagrees is not None:
            scores[_DISAGREEMENT] = float(disagrees)
    statistics = (*answer.statistics, *more)
    return structs.replace(answer, statistics=statistics, scores=scores, thought=thought)


def _is_scored(result: ItemResult) -> bool:
    return result.outcome is Outcome.SCORED and bool(result.statistics)


class _ThoughtScores(Metric):
    """What scores of thoughts add to a metric's class, which is the next one in the order."""

    # With slots here too, no class could have this one and a metric's as its bases.
    __slots__ = ()

    @property
    def scores(self) -> tuple[ScoreDefinition, ...]:
        """Return the scores of answers, then those of thoughts."""
        # A class without scores of its own for variants has those of thoughts already.
        own = tuple(score for score in super().scores if not score.name.startswith(_OF_THOUGHT))
        return (*own, *_more_scores(type(self), own))

    def expand(self, items: Mapping[str, FloatArray]) -> Mapping[str, FloatArray]:
        """Return the columns of answers and thoughts that need all items of a table."""
        made = dict(super().expand(items))
        for prefix, part in self._parts(items):
            made |= {prefix + name: column for name, column in super().expand(part).items()}
        return made

    def derive(self, clusters: Mapping[str, FloatArray]) -> Mapping[str, FloatArray]:
        """Return the clusters with the columns that scores of answers and thoughts need."""
        made = {**clusters, **super().derive(clusters)}
        for prefix, part in self._parts(clusters):
            made |= {prefix + name: column for name, column in super().derive(part).items()}
        return made

    def _parts(
        self, columns: Mapping[str, FloatArray]
    ) -> Iterator[tuple[str, Mapping[str, FloatArray]]]:
        """Yield the columns of thoughts and of their answers under the metric's own names."""
        for prefix in (_OF_THOUGHT, _PAIRED) if scores_texts(self) else ():
            part = {
                name.removeprefix(prefix): column
                for name, column in columns.items()
                if name.startswith(prefix)
            }
            yield prefix, {**part, self.unit: columns[_OF_THOUGHT + self.unit]}


@cache
def _class_with_thoughts(kind: type[Any]) -> type[_ThoughtScores]:
    more: list[Column] = []
    if scores_texts(kind):
        more.append(
            Column(name=_OF_THOUGHT + kind.unit, meaning=f"{kind.unit} with a scored thought")
        )
        for prefix, of in (
            (_OF_THOUGHT, "of the thought"),
            (_PAIRED, "of an answer with a thought"),
        ):
            more += [
                structs.replace(
                    column, name=prefix + column.name, meaning=f"{of}: {column.meaning}"
                )
                for column in kind.columns
            ]
    if _is_closed(kind):
        more.append(Column(name=_CLEAR, meaning="answers whose thought comes to a clear answer"))
        more.append(Column(name=_DISAGREEMENTS, meaning="of these, thoughts with another answer"))
    own = kind.score_definitions
    declared = {
        "__slots__": (),
        "columns": (*kind.columns, *more),
        "score_definitions": (*own, *_more_scores(kind, own)),
    }
    return cast("type[_ThoughtScores]", type(kind.__name__, (_ThoughtScores, kind), declared))


def _more_scores(
    kind: type[Metric], own: tuple[ScoreDefinition, ...]
) -> tuple[ScoreDefinition, ...]:
    texts = own if scores_texts(kind) else ()
    named = kind.text_scores
    shown = [score for score in texts if named is None or score.name in named]
    scores = [made for score in shown for made in _of_thoughts(score, kind.unit)]
    if _is_closed(kind):
        meaning = "thoughts whose last clear answer differs from the answer / those with one"
        scores.append(
            share(_DISAGREEMENT, meaning, _DISAGREEMENTS, _CLEAR, direction="lower", bounded=False)
        )
    return tuple(scores)


def _of_thoughts(score: ScoreDefinition, unit: str) -> tuple[ScoreDefinition, ScoreDefinition]:
    """Return a score of thoughts, and its difference to that of their answers."""
    thought, paired = (_Renamed(score, unit, prefix) for prefix in (_OF_THOUGHT, _PAIRED))
    count = thought.name_of(score.count or unit)
    # A difference has no limits where the score has none.
    span = score.high - score.low
    return (
        replace(
            score,
            name=_OF_THOUGHT + score.name,
            meaning=f"of thoughts: {score.meaning}",
            columns=thought.columns,
            value=thought.of(score.value),
            smooth=score.smooth and thought.of(score.smooth),
            count=count,
            bounded=False,
            largest_of=tuple(map(thought.of, score.largest_of)),
        ),
        ScoreDefinition(
            name=f"{_OF_THOUGHT}{score.name}{_DIFFERENCE}",
            meaning=f"{_OF_THOUGHT}{score.name} minus {score.name} of their answers",
            unit=score.unit,
            columns=tuple(dict.fromkeys((*thought.columns, *paired.columns))),
            value=_Difference(thought.of(score.value), paired.of(score.value)),
            smooth=score.smooth and _Difference(thought.of(score.smooth), paired.of(score.smooth)),
            count=_OF_THOUGHT + unit,
            bounded=False,
            low=-span if math.isfinite(span) else -math.inf,
            high=span,
        ),
    )


@dataclass(frozen=True, slots=True)
class _Renamed:
    """The columns of a score under a prefix."""

    score: ScoreDefinition
    unit: str
    prefix: str

    def name_of(self, column: str) -> str:
        # An answer counts with its thought, so that both have one number of items.
        return _OF_THOUGHT + column if column == self.unit else self.prefix + column

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(map(self.name_of, self.score.columns))

    def of(self, value: Callable[[Sums], FloatArray]) -> Callable[[Sums], FloatArray]:
        names = dict(zip(self.score.columns, self.columns, strict=True))
        return lambda sums: value({own: sums[name] for own, name in names.items()})


@dataclass(frozen=True, slots=True)
class _Difference:
    """One score minus another."""

    one: Callable[[Sums], FloatArray]
    other: Callable[[Sums], FloatArray]

    def __call__(self, sums: Sums) -> FloatArray:
        return self.one(sums) - self.other(sums)
