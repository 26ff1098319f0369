"""Tallies: statistics of items, summed in any order and in any number of parts."""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING

from ..errors import MergeError
from .group_codes import MISSING, GroupCodes
from .intervals import IntervalSettings, counting_clusters, score_interval
from .metric import ExpandingMetric, RepeatingMetric, ResolvingMetric
from .report import Bound, Coverage, Report, Score
from .result import ItemResult, Outcome
from .rows import BUCKETS, Rows
from .small_samples import small_sample_notes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .metric import FloatArray, Metric, ScoreDefinition

__all__ = ["Clusters", "Tally"]

_WHOLE_BELOW = 2.0**53


@dataclass(frozen=True, slots=True, kw_only=True)
class Clusters:
    """The sums of a run by cluster."""

    keys: NDArray[np.uint64]
    """The clusters, in ascending order; equal in runs about the same images."""
    columns: Mapping[str, FloatArray]
    """Column -> sums in the order of the keys."""


class Tally:
    """Statistics of a run's items: map, merge, finish.

    An item costs sixteen bytes, four or eight for each statistic and four for each grouping field;
    its text, evidence and id are not kept. Beyond 131,072 items, metrics that allow it keep no more
    than sums of 65,536 random groups of clusters, and memory no longer grows at all.

    Args:
        metric: The metric whose items are added.
        group_by: Fields to report groups by.
    """

    def __init__(self, metric: Metric, group_by: Iterable[str] = ()) -> None:
        self._metric = metric
        split = metric.split_fields if isinstance(metric, RepeatingMetric) else frozenset()
        self._repeated_by = metric.repeated_by if isinstance(metric, RepeatingMetric) else ""
        # The overall scores always need the groups by which items repeat.
        keys = (*group_by, *filter(None, [self._repeated_by]))
        self._groups = {key: GroupCodes(split=key in split) for key in keys}
        self._rows = Rows(metric.columns, len(self._groups), folds=metric.folds)
        self._reasons: Counter[str] = Counter()
        self._unscored_rows = 0
        self._unscored_times = 0

    def add(self, result: ItemResult) -> None:
        """Add one item; see :meth:`add_all`."""
        self.add_all((result,))

    def add_all(self, results: Sequence[ItemResult]) -> None:
        """Add items.

        An unscored item has no statistics, except in metrics with a score of unparsed answers,
        where it has a row that counts in that score only.
        """
        for result in results:
            if result.outcome is Outcome.UNSCORED:
                self._reasons[result.reason] += 1
                self._unscored_rows += bool(result.statistics)
                self._unscored_times += self._times(result)
        rows = [result for result in results if result.statistics]
        codes = [
            [of.code(result.fields.get(key, MISSING)) for result in rows]
            for key, of in self._groups.items()
        ]
        self._rows.append(_keys(rows), [result.statistics for result in rows], codes)

    def merge(self, other: Tally) -> None:
        """Add all items of another tally of the same metric.

        Raises:
            MergeError: The other tally's metric or groups differ.
        """
        if other._metric is not self._metric or list(self._groups) != list(other._groups):
            mine, theirs = str(self._metric.signature), str(other._metric.signature)
            if mine != theirs or list(self._groups) != list(other._groups):
                raise MergeError(f"can't merge tallies of {theirs} into tallies of {mine}")
        theirs_here = [
            codes.translated(other._groups[key], numbers)
            for (key, codes), numbers in zip(self._groups.items(), other._rows.codes, strict=True)
        ]
        self._rows.extend(other._rows, theirs_here)
        self._reasons.update(other._reasons)
        self._unscored_rows += other._unscored_rows
        self._unscored_times += other._unscored_times

    def to_bytes(self) -> bytes:
        """Return the tally as bytes, for :meth:`merge_bytes` in this or another process."""
        counters, numbers = self._rows.packed()
        head = {
            **counters,
            "groups": {key: list(codes.known) for key, codes in self._groups.items()},
            "reasons": self._reasons,
            "unscored": [self._unscored_rows, self._unscored_times],
        }
        text = json.dumps(head, separators=(",", ":")).encode()
        return len(text).to_bytes(4, "little") + text + numbers

    def merge_bytes(self, data: bytes) -> None:
        """Add all items of another tally of the same metric, from its bytes.

        Raises:
            MergeError: The bytes are damaged, or the other tally's metric or groups differ.
        """
        size = int.from_bytes(data[:4], "little")
        try:
            head = json.loads(data[4 : 4 + size])
            other = Tally(self._metric, head["groups"])
            other._rows.unpack(head, data[4 + size :])
            for key, values in head["groups"].items():
                for value in values:
                    other._groups[key].code(value)
            other._reasons.update(head["reasons"])
            other._unscored_rows, other._unscored_times = head["unscored"]
        except (ValueError, KeyError, TypeError, OverflowError) as err:
            raise MergeError(f"a tally of {self._metric.name} is damaged: {err}") from err
        self.merge(other)

    def clusters(self) -> Clusters:
        """Return the sums of each cluster, for the comparison with another run."""
        rows = self._rows
        rows.settle()
        table = self._repeated(_Table(self._metric, rows.keys, rows.weights, rows.columns))
        return table.by_cluster()

    def finish(self, intervals: IntervalSettings, *, version: str) -> Report:
        """Return the report over all items added so far; more may be added later.

        Args:
            intervals: How intervals are made.
            version: The version of Hallujudge, for the signature.
        """
        metric, rows = self._metric, self._rows
        rows.settle()
        table = _Table(metric, rows.keys, rows.weights, rows.columns)
        overall = self._repeated(table)
        coverage = self._coverage(overall)
        signature = metric.signature.extended(
            ("ci", f"{intervals.text}-{BUCKETS}-groups" if rows.folded else intervals.text),
            ("n", str(coverage.items)),
            ("unscored", str(coverage.unscored)),
            ("v", version),
        )
        groups = self._groups_of(table, intervals)
        return Report(
            metric=metric.name,
            variant=metric.variant,
            signature=str(signature),
            scores=overall.scores(intervals),
            groups={
                key: {value: scores for value, (scores, _) in parts.items()}
                for key, parts in groups.items()
            },
            coverage=coverage,
            totals=overall.totals(),
            notes=small_sample_notes(
                overall.clusters_by_score(),
                {
                    key: {value: size for value, (_, size) in parts.items()}
                    for key, parts in groups.items()
                },
            ),
        )

    def _groups_of(
        self, table: _Table, intervals: IntervalSettings
    ) -> dict[str, dict[str, tuple[dict[str, Score], int]]]:
        """Return every group's scores and number of clusters, by field and value."""
        return {
            key: {
                value: (part.scores(intervals), part.clusters)
                for value in codes.values
                for part in [table.where(codes.mask(value, numbers))]
            }
            for (key, codes), numbers in zip(self._groups.items(), self._rows.codes, strict=True)
            # A field that no scored item has gives no groups.
            if codes.values not in ([], [MISSING])
        }

    def _times(self, result: ItemResult) -> int:
        """Return how often an item counts in the overall scores."""
        key = self._repeated_by
        return len(self._groups[key].parts(result.fields.get(key, MISSING))) if key else 1

    def _repeated(self, table: _Table) -> _Table:
        """Return the table with each row as often as it counts in the overall scores."""
        if not self._repeated_by:
            return table
        place = list(self._groups).index(self._repeated_by)
        return table.repeated(self._groups[self._repeated_by].times(self._rows.codes[place]))

    def _coverage(self, table: _Table) -> Coverage:
        unscored = self._reasons.total()
        scored = self._rows.items - self._unscored_rows
        return Coverage(
            items=scored + unscored,
            scored=scored,
            unscored=unscored,
            reasons=dict(sorted(self._reasons.items())),
            bounds=table.bounds(self._unscored_times, self._rows.largest),
        )


def cluster_key(group_id: str) -> int:
    """Return a cluster's 64-bit key, the same on every machine, so that tallies can be merged."""
    return int.from_bytes(
        blake2b(group_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    )


def _keys(results: Iterable[ItemResult]) -> list[int]:
    """Return the clusters' keys; consecutive items of one cluster are hashed once."""
    keys: list[int] = []
    last, key = None, 0
    for result in results:
        if result.group_id != last:
            last = result.group_id
            key = cluster_key(last)
        keys.append(key)
    return keys


class _Table:
    """Statistics as columns, by item and by cluster."""

    def __init__(
        self,
        metric: Metric,
        clusters: array[int] | NDArray[np.uint64],
        weights: array[int] | FloatArray,
        columns: Iterable[array[int] | array[float] | FloatArray],
    ) -> None:
        import numpy as np

        self._metric = metric
        self._keys = np.array(clusters, dtype=np.uint64)
        self._items = {metric.unit: np.array(weights, dtype=np.float64)} | {
            column.name: np.array(numbers, dtype=np.float64)
            for column, numbers in zip(metric.columns, columns, strict=True)
        }
        if isinstance(metric, ExpandingMetric):
            self._items |= metric.expand(self._items)

    def where(self, mask: NDArray[np.bool_]) -> _Table:
        """Return the rows of one group."""
        columns = [self._items[column.name][mask] for column in self._metric.columns]
        weights = self._items[self._metric.unit][mask]
        return _Table(self._metric, self._keys[mask], weights, columns)

    def repeated(self, times: FloatArray) -> _Table:
        """Return the rows, each multiplied by its factor."""
        columns = [self._items[column.name] * times for column in self._metric.columns]
        return _Table(self._metric, self._keys, self._items[self._metric.unit] * times, columns)

    def totals(self) -> dict[str, float]:
        """Return the sums of the statistics over all items."""
        return {self._metric.unit: _exact_sum(self._items[self._metric.unit])} | {
            column.name: _exact_sum(self._items[column.name])
            for column in self._metric.columns
            if not column.label
        }

    def scores(self, intervals: IntervalSettings) -> dict[str, Score]:
        """Return every score of the metric with its interval."""
        return {score.name: self._score(score, intervals) for score in self._metric.scores}

    @property
    def clusters(self) -> int:
        """Return the number of clusters."""
        return len(self._derived[self._metric.unit])

    def by_cluster(self) -> Clusters:
        """Return the clusters in the order of their keys."""
        import numpy as np

        keys, first = np.unique(self._keys, return_index=True)
        columns = self._derived
        if len(keys) == len(self._keys):
            # Clusters of one item each are still in the order of items.
            columns = {name: column[first] for name, column in columns.items()}
        return Clusters(keys=keys, columns=columns)

    def clusters_by_score(self) -> dict[str, int]:
        """Return the number of clusters of each defined score."""
        return {
            score.name: len(counting_clusters(self._cluster_rows(score)))
            for score in self._metric.scores
            if self._score_value(score) is not None
        }

    def _cluster_rows(self, score: ScoreDefinition) -> FloatArray:
        import numpy as np

        return np.column_stack([self._derived[name] for name in score.columns])

    def _score_value(self, score: ScoreDefinition) -> float | None:
        return _value(score, {name: _exact_sum(self._derived[name]) for name in score.columns})

    def _score(self, score: ScoreDefinition, intervals: IntervalSettings) -> Score:
        clusters, value = self._derived, self._score_value(score)
        rows = self._cluster_rows(score)
        ends = score_interval(rows, score, intervals) if value is not None else None
        return Score(
            name=score.name,
            value=value,
            ci_low=ends[0] if ends else None,
            ci_high=ends[1] if ends else None,
            n=int(_exact_sum(clusters[score.count or self._metric.unit])),
        )

    def bounds(self, unscored: int, largest: Sequence[float]) -> dict[str, Bound]:
        """Return the bounds of each score; empty if everything has a verdict.

        Args:
            unscored: How many unscored items there are.
            largest: For each column the largest number that a scored item has.
        """
        if not unscored and not self._unresolved():
            return {}
        best, worst = (self._imagined(unscored, largest, best=best) for best in (True, False))
        return {
            score.name: Bound(best=best_value, worst=worst_value)
            for score in self._metric.scores
            if score.bounded
            and (best_value := _value(score, best)) is not None
            and (worst_value := _value(score, worst)) is not None
        }

    def _unresolved(self) -> bool:
        """Return whether a scored item has a claim without a verdict."""
        metric = self._metric
        return isinstance(metric, ResolvingMetric) and bool(self._items[metric.unresolved].any())

    def _imagined(self, unscored: int, largest: Sequence[float], *, best: bool) -> dict[str, float]:
        """Return sums with all unscored items and claims at one extreme."""
        import numpy as np

        metric = self._metric
        items: Mapping[str, FloatArray] = self._items
        if isinstance(metric, ResolvingMetric):
            items = metric.resolve(items, best=best)
        clusters = metric.derive(_cluster_sums(self._keys, items))
        observed = {
            column.name: np.array([number])
            for column, number in zip(metric.columns, largest, strict=True)
        }
        row = {metric.unit: 1.0, **metric.extreme(observed, best=best)}
        extreme = metric.derive({name: np.array([row[name]]) for name in self._items})
        return {
            name: _exact_sum(clusters[name]) + unscored * float(extreme[name][0])
            for name in extreme
        }

    @cached_property
    def _derived(self) -> Mapping[str, FloatArray]:
        return self._metric.derive(_cluster_sums(self._keys, self._items))


def _cluster_sums(
    keys: NDArray[np.uint64], items: Mapping[str, FloatArray]
) -> dict[str, FloatArray]:
    """Return sums by cluster, independent of the order of items."""
    import numpy as np

    in_order = np.sort(keys)
    if not np.any(in_order[1:] == in_order[:-1]):
        return dict(items)
    order = np.lexsort([*items.values(), keys])
    starts = np.flatnonzero(np.diff(keys[order], prepend=~keys[order[:1]]))
    return {name: np.add.reduceat(column[order], starts) for name, column in items.items()}


def _exact_sum(numbers: FloatArray) -> float:
    """Return the correctly rounded sum, which does not depend on the order."""
    import math

    import numpy as np

    # Sums of whole numbers are exact in any order as long as a float holds them exactly.
    if np.array_equal(numbers, np.rint(numbers)) and np.abs(numbers).sum() < _WHOLE_BELOW:
        return float(numbers.sum())
    return math.fsum(numbers.tolist())


def _value(score: ScoreDefinition, sums: Mapping[str, float]) -> float | None:
    import numpy as np

    value = float(score.value({name: np.array([sums[name]]) for name in score.columns})[0])
    return None if np.isnan(value) else value
