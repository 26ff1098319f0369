"""Metrics of declared benchmarks: a class for each, made of its declaration."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, make_dataclass
from functools import cache, partial
from typing import Any, cast

from ..framework.arrays import FloatArray, np
from ..framework.columns_and_scores import Column
from ..framework.metric import SOFT, WITHOUT_PROBABILITY
from ..framework.papers import facts_of
from .answer_scores import ReadAnswer, column_within, count
from .answers_metric import AnswersMetric
from .closed_questions import AnswersItem, ClosedQuestions
from .uncounted_answers import end_columns, missing_counts, open_columns_of, other_parsers

# The column of bundles that do not count, in benchmarks with means over a field.
_UNSCORED = "unscored"
# That of answers that do not count in a scored bundle, in benchmarks of partial bundles.
_OPEN = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeansMetric(AnswersMetric):
    """Base class of the metrics with means over a field, whose values have columns of their own."""

    def unscored_row(self, item: AnswersItem) -> tuple[float, ...]:
        """Return the place of an item that does not count: a mean needs it for its bounds."""
        places = self.places(item)
        # The last columns are _UNSCORED and the places, in the order of metric_of().
        return (*(0,) * (len(self.columns) - 1 - len(places)), 1, *places)

    def expand(self, items: Mapping[str, FloatArray]) -> Mapping[str, FloatArray]:
        """Return the columns of each value of the means' fields."""
        return {
            column_within(name, value): items[name] * within
            for score in self.benchmark.scores
            for value, code in self.codes.get(score.over, {}).items()
            for within in [items[score.over] == code]
            for name in [each.name for each in score.counts]
        }

    def resolve(self, items: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, FloatArray]:
        """Return the columns with every unscored bundle right, or wrong, at its place."""
        known = AnswersMetric.resolve(self, items, best=best)
        # The columns of all bundles get theirs from `extreme`.
        end = self.ends()[best]
        decided = {name: known[name] + items[_UNSCORED] * end[name] for name in end}
        return {**known, **self.expand({**known, **decided})}


def class_name(benchmark: str) -> str:
    """Return the name of the class of a benchmark's metric, such as ``PopeMetric``."""
    return f"{benchmark.title().replace('-', '')}Metric"


@cache
def metric_of(benchmark: ClosedQuestions) -> type[AnswersMetric]:
    """Return the metric of a benchmark: a class of its own, with a field for each option."""
    means = (score for score in benchmark.scores if score.over)
    codes = {score.over: {v: n for n, v in enumerate(score.values, start=1)} for score in means}
    base: Any = benchmark.base or (MeansMetric if codes else AnswersMetric)
    of_scores = (each for score in benchmark.scores for each in score.counts)
    counts = {each.name: each for each in (*of_scores, *missing_counts(benchmark))}
    if (judged := benchmark.judged) is not None:
        note = f"soft: {judged.noun} that count by verdict"
        counts[WITHOUT_PROBABILITY] = count(WITHOUT_PROBABILITY, note, _lacks_probability)
    columns = [
        Column(name=each.name, meaning=each.meaning, integral=each.integral, label=each.label)
        for each in counts.values()
    ]
    others = other_parsers(benchmark, base.choosable_parsers(benchmark))
    columns += others.columns if others is not None else ()
    if open_columns := open_columns_of(benchmark, tuple(counts.values())):
        columns.append(Column(name=_OPEN, meaning="answers of scored items that do not count"))
        columns += end_columns(counts, open_columns)
    if codes:
        columns.append(Column(name=_UNSCORED, meaning=f"{benchmark.unit} that do not count"))
        columns += [Column(name=name, meaning=f"{name}, as a number", label=True) for name in codes]
    columns += base.place_columns
    facts = facts_of(benchmark.name)
    declared = {
        "name": benchmark.name,
        "summary": benchmark.summary,
        "papers": facts.papers,
        "variants": benchmark.variant_definitions,
        "options": benchmark.options,
        "group_by": benchmark.group_by,
        "judge_option": benchmark.judge_option,
        "unit": benchmark.unit,
        # Columns of single values are made from whole tables, so rows must stay as they are.
        "folds": not (codes or any(each.label for each in counts.values())),
        "unresolved": _OPEN if open_columns else _UNSCORED if codes else base.unresolved,
        "columns": tuple(columns),
        "score_definitions": tuple(score.definition for score in benchmark.scores),
        "ranked_by": benchmark.ranked_by,
        "ranking_source": facts.ranking_source,
        "headline": facts.headline,
        "benchmark": benchmark,
        "soft_noun": judged.noun if judged else "",
        "counts": tuple(counts.values()),
        "codes": codes,
        "open_columns": open_columns,
        "all_parsers": others,
        # Where pickle finds the class by its name, in a process that has not made it yet.
        "__module__": "hallujudge.metrics.families",
        "__reduce__": _made_again,
    }
    made = make_dataclass(
        class_name(benchmark.name),
        # SoftMetric has the field of the option SOFT.
        [(each.name, str, field(default="")) for each in benchmark.options if each.name != SOFT],
        bases=(base,),
        namespace=declared,
        frozen=True,
        slots=True,
        kw_only=True,
    )
    return cast("type[AnswersMetric]", made)


def _made_again(metric: AnswersMetric) -> tuple[partial[AnswersMetric], tuple[()]]:
    """Return what pickle makes the metric of in another process: its class and arguments.

    What a metric derives from these has parsers, which are functions without a name in a module.
    """
    given = {each.name: getattr(metric, each.name) for each in fields(metric) if each.init}
    return partial(type(metric), **given), ()


def _lacks_probability(answer: ReadAnswer) -> bool:
    """Return whether an answer counts by its verdict, where probabilities count."""
    return answer.soft and answer.probability is None


class VariantComparison:
    """Scores of the same answers under every variant, added up over batches.

    Args:
        metric: The metric.
    """

    def __init__(self, metric: type[AnswersMetric]) -> None:
        self._rows: dict[AnswersMetric, Counter[tuple[float, ...]]] = {
            metric(variant=variant.name): Counter() for variant in metric.benchmark.variants
        }

    def add(self, items: Sequence[AnswersItem]) -> None:
        """Add bundles whose answers all have a response and a label."""
        for metric, rows in self._rows.items():
            rows.update([metric.score(item).statistics for item in items])

    def scores(self) -> dict[str, dict[str, float | None]]:
        """Return variant -> score -> value; None if it is undefined."""
        return {metric.variant: _scores(metric, rows) for metric, rows in self._rows.items()}


def _scores(
    metric: AnswersMetric, rows: Mapping[tuple[float, ...], int]
) -> dict[str, float | None]:
    sums = {name: np.array([total]) for name, total in metric.totals(rows).items()}
    values = {score.name: float(score.value(sums)[0]) for score in metric.scores}
    return {name: None if math.isnan(value) else value for name, value in values.items()}
