"""Scores of thoughts: a metric that scores what models think as it scores what they say.

Each item of :func:`with_thought_scores` has the statistics of its answer, those of its thought, and
those of its answer again if it has a scored thought. The difference of two scores is thus paired:
both are over the same items. No script was released that does this.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, cast

from msgspec import structs

from .arrays import FloatArray
from .columns_and_scores import Column, ScoreDefinition, Sums, share
from .metric import Metric
from .results import ItemResult, Outcome

THOUGHT, PAIRED = "thought_", "paired_"
"""Before the names of columns: of thoughts, and of answers that have a scored thought."""
DIFFERENCE = "_difference"
"""After the name of a score of thoughts: minus the same score of their answers."""
CLEAR, DISAGREEMENTS = "thought_answers", "thought_disagreements"
"""The columns of closed questions whose thought comes to a clear answer, and to another one."""
DISAGREEMENT = "thought_disagreement"
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
            scores |= {f"{THOUGHT}{name}": value for name, value in thought.scores.items()}
        else:
            # Rows of a table have one length, and zeros change no sum.
            more += [0] * (1 + 2 * len(answer.statistics))
    if _is_closed(metric):
        more += [int(disagrees is not None), int(bool(disagrees))]
        if disagrees is not None:
            scores[DISAGREEMENT] = float(disagrees)
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
        own = tuple(score for score in super().scores if not score.name.startswith(THOUGHT))
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
        for prefix in (THOUGHT, PAIRED) if scores_texts(self) else ():
            part = {
                name.removeprefix(prefix): column
                for name, column in columns.items()
                if name.startswith(prefix)
            }
            yield prefix, {**part, self.unit: columns[THOUGHT + self.unit]}


@cache
def _class_with_thoughts(kind: type[Any]) -> type[_ThoughtScores]:
    more: list[Column] = []
    if scores_texts(kind):
        more.append(Column(name=THOUGHT + kind.unit, meaning=f"{kind.unit} with a scored thought"))
        for prefix, of in ((THOUGHT, "of the thought"), (PAIRED, "of an answer with a thought")):
            more += [
                structs.replace(
                    column, name=prefix + column.name, meaning=f"{of}: {column.meaning}"
                )
                for column in kind.columns
            ]
    if _is_closed(kind):
        more.append(Column(name=CLEAR, meaning="answers whose thought comes to a clear answer"))
        more.append(Column(name=DISAGREEMENTS, meaning="of these, thoughts with another answer"))
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
            share(DISAGREEMENT, meaning, DISAGREEMENTS, CLEAR, direction="lower", bounded=False)
        )
    return tuple(scores)


def _of_thoughts(score: ScoreDefinition, unit: str) -> tuple[ScoreDefinition, ScoreDefinition]:
    """Return a score of thoughts, and its difference to that of their answers."""
    thought, paired = (_Renamed(score, unit, prefix) for prefix in (THOUGHT, PAIRED))
    count = thought.name_of(score.count or unit)
    # A difference has no limits where the score has none.
    span = score.high - score.low
    return (
        replace(
            score,
            name=THOUGHT + score.name,
            meaning=f"of thoughts: {score.meaning}",
            columns=thought.columns,
            value=thought.of(score.value),
            smooth=score.smooth and thought.of(score.smooth),
            count=count,
            bounded=False,
            largest_of=tuple(map(thought.of, score.largest_of)),
        ),
        ScoreDefinition(
            name=f"{THOUGHT}{score.name}{DIFFERENCE}",
            meaning=f"{THOUGHT}{score.name} minus {score.name} of their answers",
            unit=score.unit,
            columns=tuple(dict.fromkeys((*thought.columns, *paired.columns))),
            value=_Difference(thought.of(score.value), paired.of(score.value)),
            smooth=score.smooth and _Difference(thought.of(score.smooth), paired.of(score.smooth)),
            count=THOUGHT + unit,
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
        return THOUGHT + column if column == self.unit else self.prefix + column

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
