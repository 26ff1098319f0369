"""Statistics by item, by cluster and by random group, and the scores computed from them."""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, Any, TypeAlias

from .arrays import BoolArray, FloatArray, np
from .columns_and_scores import Column, ScoreDefinition, Sums
from .intervals import IntervalSettings, counting_clusters, score_interval
from .metric import Metric
from .report import Bound, Score

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers: TypeAlias = "array[int] | array[float]"

FOLD_ABOVE = 1 << 17
"""Up to this many items, every cluster keeps its own row."""

BUCKETS = 1 << 16
"""Random groups that clusters are added to beyond that.

Leaving out random groups of clusters estimates the same variance as leaving out clusters (Wolter,
Introduction to Variance Estimation, chapter 2, the random group method). Which group a cluster is
in follows from its key alone, so that order and merging can't show.
"""


class Rows:
    """Statistics of items by column, in bounded memory if the metric allows it.

    Args:
        columns: The statistics of an item.
        fields: How many grouping fields there are.
        folds: Whether rows of different clusters may be added up.
    """

    def __init__(self, columns: Sequence[Column], fields: int, *, folds: bool) -> None:
        # Eight bytes for a number; a list of Python's numbers takes several times as many.
        self.keys = array("Q")
        self.weights = array("q")
        # Sums of many items need more room than an item does.
        whole = "q" if folds else "i"
        # Lists within: a tuple of a generator resumes it for each column.
        self.columns: tuple[Numbers, ...] = tuple(
            [array(whole if column.integral else "d") for column in columns]
        )
        self.codes = tuple([array("i") for _ in range(fields)])
        self.largest = [0.0] * len(self.columns)
        self.items = 0
        self.folded = False
        self._folds = folds
        self._fresh = 0
        self._room = FOLD_ABOVE

    def append(
        self,
        keys: Sequence[int],
        statistics: Sequence[Sequence[float]],
        codes: Sequence[Sequence[int]],
    ) -> None:
        """Add items.

        Args:
            keys: Their clusters.
            statistics: One row of numbers for each.
            codes: One column of codes for each grouping field.
        """
        if not keys:
            return
        self.keys.extend(keys)
        self.weights.extend(repeat(1, len(keys)))
        for column, numbers in zip(self.columns, zip(*statistics, strict=True), strict=True):
            try:
                made = array(column.typecode, numbers)
            except TypeError:  # a server sends whole numbers as floats
                made = array(column.typecode, [int(number) for number in numbers])
            column.extend(made)
        for column_codes, code in zip(self.codes, codes, strict=True):
            column_codes.extend(code)
        self.items += len(keys)
        if self._folds and len(self.keys) > self._room:
            self._fold()

    def extend(self, other: Rows, codes: Sequence[Sequence[int]]) -> None:
        """Add all rows of another table, with its codes translated."""
        # Rows of single items are looked at later, those of many small tables at once.
        known = other.folded or other._fresh > 0
        if known:
            self._note_largest()
            other._note_largest()
            self.largest = list(map(max, self.largest, other.largest))
        self.keys.extend(other.keys)
        self.weights.extend(other.weights)
        for column, more in zip(self.columns, other.columns, strict=True):
            column.extend(more)  # type: ignore[arg-type]  # of the same type, being of one metric
        for column_codes, more_codes in zip(self.codes, codes, strict=True):
            column_codes.extend(more_codes)
        self.items += other.items
        self._fresh = len(self.keys) if known else self._fresh
        self.folded = self.folded or other.folded
        # Merging many small tables must not fold after each of them.
        due = len(self.keys) > self._room if self.folded else self.items > FOLD_ABOVE
        if self._folds and due:
            self._fold()

    def packed(self) -> tuple[dict[str, object], bytes]:
        """Return the counters and the numbers, for :meth:`unpack`."""
        self._note_largest()
        counters: dict[str, object] = {
            "rows": len(self.keys),
            "items": self.items,
            "folded": self.folded,
            "largest": self.largest,
        }
        # Rows that were not folded all have the weight 1, which need not be sent.
        arrays = [self.keys, *([self.weights] if self.folded else []), *self.columns, *self.codes]
        return counters, b"".join(map(_little_endian, arrays))

    def unpack(self, counters: Mapping[str, Any], data: bytes) -> None:
        """Fill an empty table with what :meth:`packed` returned.

        Raises:
            ValueError: The length of the data does not fit the counters.
        """
        count = counters["rows"]
        arrays = [self.keys, *([self.weights] if counters["folded"] else [])]
        at = 0
        for numbers in (*arrays, *self.columns, *self.codes):
            end = at + count * numbers.itemsize
            numbers.frombytes(data[at:end])
            if sys.byteorder == "big":
                numbers.byteswap()
            at = end
        # Bytes that are too few leave the last arrays short, which no method of theirs reports.
        if at != len(data) or len(self.keys) != count:
            raise ValueError(f"the statistics have {len(data)} bytes; {at} are expected")
        if not counters["folded"]:
            self.weights.extend(repeat(1, count))
        self.items, self.folded = counters["items"], counters["folded"]
        self.largest = [float(number) for number in counters["largest"]]
        self._fresh = count

    def settle(self) -> None:
        """Flush pending rows before they are read."""
        self._note_largest()
        if self.folded:
            self._fold()

    def _note_largest(self) -> None:
        """Update the largest value of a single item in each column."""
        if self._fresh < len(self.keys):
            # The largest of many numbers is found by numpy in a tenth of the time.
            is_short = len(self.keys) - self._fresh <= _FEW
            self.largest = [
                max(before, float(max(fresh) if is_short else _view(fresh).max()))
                for before, column in zip(self.largest, self.columns, strict=True)
                for fresh in [column[self._fresh :]]
            ]
            self._fresh = len(self.keys)

    def _fold(self) -> None:
        """Sum rows with the same random group and codes."""
        # Copy: an array can't grow while a view of it exists.
        self._note_largest()
        keys = np.array(self.keys, dtype=np.uint64) % np.uint64(BUCKETS)
        codes = [np.array(column, dtype=np.int32) for column in self.codes]
        order = np.lexsort([*codes, keys])
        sorted_by = [keys[order], *(column[order] for column in codes)]
        changes = np.zeros(len(order), dtype=bool)
        changes[0] = True
        for column in sorted_by:
            changes[1:] |= column[1:] != column[:-1]
        starts = np.flatnonzero(changes)

        def summed(numbers: Numbers) -> Numbers:
            kind = np.float64 if numbers.typecode == "d" else np.int64
            sums = np.add.reduceat(np.array(numbers, dtype=kind)[order], starts)
            return array(numbers.typecode, sums.tobytes())

        self.keys = array("Q", sorted_by[0][starts].tobytes())
        self.codes = tuple(array("i", column[starts].tobytes()) for column in sorted_by[1:])
        self.weights = array("q", summed(self.weights).tobytes())
        self.columns = tuple(summed(column) for column in self.columns)
        self.folded = True
        self._fresh = len(self.keys)
        # Twice what is left, so that many fields to group by do not fold the table at each batch.
        self._room = max(FOLD_ABOVE, 2 * len(self.keys))


def _view(numbers: Numbers) -> NDArray[Any]:
    """Return numbers for numpy; they can't grow while it has them."""
    return np.frombuffer(numbers, dtype=numbers.typecode)


def _little_endian(numbers: Numbers) -> bytes:
    """Return the numbers as bytes that every machine reads alike."""
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers.tobytes()


# A float holds every whole number below this one exactly.
_WHOLE_BELOW = 2.0**53
# So few numbers are added faster by Python than by several calls of numpy.
_FEW = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Clusters:
    """The sums of a run by cluster."""

    keys: NDArray[np.uint64]
    """The clusters, in ascending order; equal in runs about the same images."""
    columns: Mapping[str, FloatArray]
    """Column -> sums in the order of the keys."""


class Table:
    """Statistics as columns, by item and by cluster."""

    def __init__(
        self,
        metric: Metric,
        clusters: array[int] | NDArray[np.uint64],
        weights: array[int] | FloatArray,
        columns: Iterable[array[int] | array[float] | FloatArray],
    ) -> None:
        self._metric = metric
        self._values: dict[str, float | None] = {}
        self._sums: dict[int, float] = {}
        self._keys = np.array(clusters, dtype=np.uint64)
        self._items = {metric.unit: np.array(weights, dtype=np.float64)} | {
            column.name: np.array(numbers, dtype=np.float64)
            for column, numbers in zip(metric.columns, columns, strict=True)
        }
        self._items |= metric.expand(self._items)

    def where(self, mask: BoolArray) -> Table:
        """Return the rows of one group."""
        columns = [self._items[column.name][mask] for column in self._metric.columns]
        weights = self._items[self._metric.unit][mask]
        # The table computes the columns of expand() again, from the rows of this group alone.
        return Table(self._metric, self._keys[mask], weights, columns)

    def repeated(self, times: FloatArray) -> Table:
        """Return the rows, each multiplied by its factor."""
        columns = [self._items[column.name] * times for column in self._metric.columns]
        return Table(self._metric, self._keys, self._items[self._metric.unit] * times, columns)

    def totals(self) -> dict[str, float]:
        """Return the sums of the statistics over all items."""
        return {self._metric.unit: self._sum(self._items[self._metric.unit])} | {
            column.name: self._sum(self._items[column.name])
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
        keys, first = np.unique(self._keys, return_index=True)
        columns = self._derived
        if len(keys) == len(self._keys):
            # Clusters of one item each are still in the order of items.
            columns = {name: column[first] for name, column in columns.items()}
        return Clusters(keys=keys, columns=columns)

    def clusters_by_score(self) -> dict[str, int]:
        """Return the number of clusters of each defined score."""
        return {
            score.name: self._counting(score)
            for score in self._metric.scores
            if self._score_value(score) is not None
        }

    def _counting(self, score: ScoreDefinition) -> int:
        """Return the number of clusters that a score depends on."""
        if self.clusters <= _FEW:
            rows = zip(*(self._derived[name].tolist() for name in score.columns), strict=True)
            return sum(map(any, rows))
        return int(np.count_nonzero(counting_clusters(self._cluster_rows(score))))

    def _cluster_rows(self, score: ScoreDefinition) -> FloatArray:
        # Each column in one piece: numpy looks at many short rows ten times as slowly.
        return np.array([self._derived[name] for name in score.columns]).T

    def _score_value(self, score: ScoreDefinition) -> float | None:
        if score.name not in self._values:
            self._values[score.name] = _value(score, self._score_sums)
        return self._values[score.name]

    def _score(self, score: ScoreDefinition, intervals: IntervalSettings) -> Score:
        clusters, value = self._derived, self._score_value(score)
        ends = None
        if value is not None and self.clusters > 1:
            ends = score_interval(self._cluster_rows(score), score, intervals)
        return Score(
            name=score.name,
            value=value,
            ci_low=ends[0] if ends else None,
            ci_high=ends[1] if ends else None,
            n=int(self._sum(clusters[score.count or self._metric.unit])),
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
        return bool(metric.unresolved) and bool(self._items[metric.unresolved].any())

    def _imagined(
        self, unscored: int, largest: Sequence[float], *, best: bool
    ) -> dict[str, FloatArray]:
        """Return sums with all unscored items and claims at one extreme."""
        metric = self._metric
        items = metric.resolve(self._items, best=best)
        clusters = metric.derive(_cluster_sums(self._keys, items))
        observed = {
            column.name: np.array([number])
            for column, number in zip(metric.columns, largest, strict=True)
        }
        row = {metric.unit: 1.0, **metric.extreme(observed, best=best)}
        # Columns that are made from a whole table say nothing of one item.
        extreme = metric.derive({name: np.array([row.get(name, 0.0)]) for name in self._items})
        return {
            name: np.array([_exact_sum(clusters[name]) + unscored * float(extreme[name][0])])
            for name in extreme
        }

    @cached_property
    def _score_sums(self) -> Mapping[str, FloatArray]:
        """The sums of the columns that scores need."""
        if self.clusters == 1:
            return self._derived
        needed = {name for score in self._metric.scores for name in score.columns}
        return {name: np.array([self._sum(self._derived[name])]) for name in needed}

    def _sum(self, column: FloatArray) -> float:
        """Return the exact sum of one of this table's columns, which several scores may need."""
        # Columns live as long as the table, and derived ones are mostly those of the items.
        if (known := self._sums.get(id(column))) is None:
            known = self._sums[id(column)] = _exact_sum(column)
        return known

    @cached_property
    def _derived(self) -> Mapping[str, FloatArray]:
        return self._metric.derive(_cluster_sums(self._keys, self._items))


def _cluster_sums(
    keys: NDArray[np.uint64], items: Mapping[str, FloatArray]
) -> dict[str, FloatArray]:
    """Return sums by cluster, independent of the order of items."""
    if len(keys) < 2:
        return dict(items)
    # Items of a cluster mostly follow each other; only elsewhere they are looked for.
    if not _has_neighbours(keys) and not _has_neighbours(np.sort(keys)):
        return dict(items)
    order = np.argsort(keys, kind="stable")
    # The complement of the first key is another one, so that the first row begins a cluster.
    starts = np.flatnonzero(np.diff(keys[order], prepend=~keys[order[:1]]))
    return {name: _sums_from(column, order, starts, keys) for name, column in items.items()}


def _has_neighbours(keys: NDArray[np.uint64]) -> bool:
    """Return whether two keys that follow each other are equal."""
    return bool(np.any(keys[1:] == keys[:-1]))


def _sums_from(
    column: FloatArray, order: NDArray[np.intp], starts: NDArray[np.intp], keys: NDArray[np.uint64]
) -> FloatArray:
    """Return a column's sums by cluster, whose last digit no order of items changes."""
    ordered = column[order]
    sums: FloatArray = np.add.reduceat(ordered, starts)
    if np.array_equal(column, np.rint(column)):
        # Numbers of both signs may cancel out, while a partial sum is too large to be exact.
        largest = sums if column.min() >= 0 else np.add.reduceat(np.abs(ordered), starts)
        if largest.max() < _WHOLE_BELOW:
            return sums
    # Rounding depends on the order of numbers. Sorting takes several times as long. Each column is
    # sorted alone: the first item of a cluster may hold what the cluster has once, in a column of
    # its own, and which item is first depends on the order of the answers.
    return np.add.reduceat(column[np.lexsort([column, keys])], starts)


def _exact_sum(numbers: FloatArray) -> float:
    """Return the correctly rounded sum, which does not depend on the order."""
    if len(numbers) <= _FEW:
        return math.fsum(numbers.tolist())
    # Sums of whole numbers are exact in any order as long as a float holds them exactly.
    if np.array_equal(numbers, np.rint(numbers)) and np.abs(numbers).sum() < _WHOLE_BELOW:
        return float(numbers.sum())
    return math.fsum(numbers.tolist())


def _value(score: ScoreDefinition, sums: Sums) -> float | None:
    value = float(score.value(sums)[0])
    return None if math.isnan(value) else value
