"""Tallies: statistics of items, added up in any order and any number of pieces."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING

from ._bootstrap import IntervalSettings, bootstrap_interval
from .base import ExpandingMetric
from .errors import MergeError
from .values import Bound, Coverage, ItemResult, Outcome, Report, Score

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .base import FloatArray, Metric, ScoreDefinition

__all__ = ["Tally"]

_MISSING = ""


class Tally:
    """Statistics of a run's items: map, merge, finish.

    An item costs eight bytes for its cluster, four or eight for each statistic and four for each
    grouping field; its text, evidence and id are not kept.

    Args:
        metric: The metric whose items are added.
        group_by: Fields to report groups by.
    """

    def __init__(self, metric: Metric, group_by: Iterable[str] = ()) -> None:
        self._metric = metric
        self._clusters = array("Q")
        self._columns = tuple(array("i" if column.integral else "d") for column in metric.columns)
        self._groups = {key: _Codes() for key in group_by}
        self._reasons: Counter[str] = Counter()
        self._unscored_rows = 0

    def add(self, result: ItemResult) -> None:
        """Adds one item.

        An unscored item has no statistics, but for metrics with a score that says how many answers
        could not be read: there it has a row that counts in that score alone.
        """
        if result.outcome is Outcome.UNSCORED:
            self._reasons[result.reason] += 1
            if not result.statistics:
                return
            self._unscored_rows += 1
        self._clusters.append(cluster_key(result.group_id))
        for column, number in zip(self._columns, result.statistics, strict=True):
            column.append(number)  # type: ignore[arg-type]  # whole by the column's declaration
        for key, codes in self._groups.items():
            codes.append(result.fields.get(key, _MISSING))

    def merge(self, other: Tally) -> None:
        """Adds all items of another tally of the same metric.

        Raises:
            MergeError: The other tally's metric or groups differ.
        """
        mine, theirs = str(self._metric.signature), str(other._metric.signature)
        if mine != theirs or list(self._groups) != list(other._groups):
            raise MergeError(f"can't merge tallies of {theirs} into tallies of {mine}")
        self._clusters.extend(other._clusters)
        for column, more in zip(self._columns, other._columns, strict=True):
            column.extend(more)
        for key, codes in self._groups.items():
            codes.extend(other._groups[key])
        self._reasons.update(other._reasons)
        self._unscored_rows += other._unscored_rows

    def finish(self, intervals: IntervalSettings, *, version: str) -> Report:
        """The report over everything added so far; more may be added after it.

        Args:
            intervals: How intervals are made.
            version: The version of Hallujudge, for the signature.
        """
        metric = self._metric
        table = _Table(metric, self._clusters, self._columns)
        coverage = self._coverage(table)
        signature = metric.signature.extended(
            ("ci", intervals.text),
            ("seed", str(intervals.seed)),
            ("n", str(coverage.items)),
            ("unscored", str(coverage.unscored)),
            ("v", version),
        )
        return Report(
            metric=metric.name,
            variant=metric.variant,
            signature=str(signature),
            scores=table.scores(intervals),
            groups={
                key: {
                    value: table.where(codes.mask(value)).scores(intervals)
                    for value in codes.values
                }
                for key, codes in self._groups.items()
                # A field that no item has makes no groups.
                if codes.values != [_MISSING]
            },
            coverage=coverage,
            totals={metric.unit: float(len(self._clusters)), **table.totals()},
        )

    def _coverage(self, table: _Table) -> Coverage:
        unscored = self._reasons.total()
        scored = len(self._clusters) - self._unscored_rows
        return Coverage(
            items=scored + unscored,
            scored=scored,
            unscored=unscored,
            reasons=dict(sorted(self._reasons.items())),
            bounds=table.bounds(unscored) if unscored else {},
        )


def cluster_key(group_id: str) -> int:
    """A cluster's 64-bit key: the same on every machine, so that tallies merge anywhere."""
    return int.from_bytes(
        blake2b(group_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    )


class _Codes:
    """A grouping field's values, one small number for each item."""

    def __init__(self) -> None:
        self._codes = array("i")
        self._of: dict[str, int] = {}

    def append(self, value: str) -> None:
        self._codes.append(self._of.setdefault(value, len(self._of)))

    def extend(self, other: _Codes) -> None:
        here = [self._of.setdefault(value, len(self._of)) for value in other._of]
        self._codes.extend(here[code] for code in other._codes)

    @property
    def values(self) -> list[str]:
        """Distinct values in lexical order, so that the order of items can't show."""
        return sorted(self._of)

    def mask(self, value: str) -> NDArray[np.bool_]:
        import numpy as np

        mask: NDArray[np.bool_] = np.frombuffer(self._codes, dtype=np.int32) == self._of[value]
        return mask


class _Table:
    """Statistics as columns, by item and by cluster."""

    def __init__(
        self,
        metric: Metric,
        clusters: array[int] | NDArray[np.uint64],
        columns: Iterable[array[int] | array[float] | FloatArray],
    ) -> None:
        import numpy as np

        self._metric = metric
        self._keys = np.array(clusters, dtype=np.uint64)
        self._items = {metric.unit: np.ones(len(self._keys))} | {
            column.name: np.array(numbers, dtype=np.float64)
            for column, numbers in zip(metric.columns, columns, strict=True)
        }
        if isinstance(metric, ExpandingMetric):
            self._items |= metric.expand(self._items)

    def where(self, mask: NDArray[np.bool_]) -> _Table:
        """The rows of one group."""
        columns = [self._items[column.name][mask] for column in self._metric.columns]
        return _Table(self._metric, self._keys[mask], columns)

    def totals(self) -> dict[str, float]:
        """Sums of the statistics over all items."""
        return {
            column.name: _exact_sum(self._items[column.name])
            for column in self._metric.columns
            if not column.label
        }

    def scores(self, intervals: IntervalSettings) -> dict[str, Score]:
        """Every score of the metric, with its interval."""
        clusters = self._derived()
        return {
            score.name: self._score(score, clusters, intervals) for score in self._metric.scores
        }

    def _score(
        self,
        score: ScoreDefinition,
        clusters: Mapping[str, FloatArray],
        intervals: IntervalSettings,
    ) -> Score:
        import numpy as np

        value = _value(score, {name: _exact_sum(clusters[name]) for name in score.columns})
        rows = np.column_stack([clusters[name] for name in score.columns])
        ends = bootstrap_interval(rows, score, intervals) if value is not None else None
        return Score(
            name=score.name,
            value=value,
            ci_low=ends[0] if ends else None,
            ci_high=ends[1] if ends else None,
            n=int(_exact_sum(clusters[score.count or self._metric.unit])),
        )

    def bounds(self, unscored: int) -> dict[str, Bound]:
        """Every bounded score with all unscored items at their best, and at their worst."""
        import numpy as np

        clusters = self._derived()
        ends = []
        for best in (True, False):
            row = {self._metric.unit: 1.0, **self._metric.extreme(self._items, best=best)}
            imagined = self._metric.derive({name: np.array([row[name]]) for name in self._items})
            ends.append(
                {
                    name: _exact_sum(clusters[name]) + unscored * float(imagined[name][0])
                    for name in imagined
                }
            )
        return {
            score.name: Bound(best=best_value, worst=worst_value)
            for score in self._metric.scores
            if score.bounded
            and (best_value := _value(score, ends[0])) is not None
            and (worst_value := _value(score, ends[1])) is not None
        }

    def _derived(self) -> Mapping[str, FloatArray]:
        return self._metric.derive(_cluster_sums(self._keys, self._items))


def _cluster_sums(
    keys: NDArray[np.uint64], items: Mapping[str, FloatArray]
) -> dict[str, FloatArray]:
    """Sums by cluster, independent of the order in which items came."""
    import numpy as np

    if len(np.unique(keys)) == len(keys):
        return dict(items)
    order = np.lexsort([*items.values(), keys])
    starts = np.flatnonzero(np.diff(keys[order], prepend=~keys[order[:1]]))
    return {name: np.add.reduceat(column[order], starts) for name, column in items.items()}


def _exact_sum(numbers: FloatArray) -> float:
    """The correctly rounded sum, which no order of the numbers can change."""
    import math

    return math.fsum(numbers)


def _value(score: ScoreDefinition, sums: Mapping[str, float]) -> float | None:
    import numpy as np

    value = float(score.value({name: np.array([sums[name]]) for name in score.columns})[0])
    return None if np.isnan(value) else value
