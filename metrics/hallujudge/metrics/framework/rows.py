"""Rows of statistics: one for each item, or in large runs one for each random group."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from .metric import Column

    Numbers: TypeAlias = "array[int] | array[float]"

__all__ = ["BUCKETS", "FOLD_ABOVE", "Rows"]

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
            rows = len(column)
            try:
                column.extend(numbers)
            except TypeError:  # a server sends whole numbers as floats
                del column[rows:]
                column.extend([int(number) for number in numbers])
        for column_codes, code in zip(self.codes, codes, strict=True):
            column_codes.extend(code)
        self.items += len(keys)
        if self._folds and len(self.keys) > self._room:
            self._fold()

    def extend(self, other: Rows, codes: Sequence[Sequence[int]]) -> None:
        """Add all rows of another table, with its codes translated."""
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
        self._fresh = len(self.keys)
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
        arrays = [self.keys, *([self.weights] if self.folded else []), *self.columns, *self.codes]
        return counters, b"".join(map(_little_endian, arrays))

    def unpack(self, counters: Mapping[str, Any], data: bytes) -> None:
        """Fill an empty table with what :meth:`packed` returned.

        Raises:
            ValueError: The data has another length than the counters say.
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
            self.largest = [
                max(before, float(max(column[self._fresh :])))
                for before, column in zip(self.largest, self.columns, strict=True)
            ]
            self._fresh = len(self.keys)

    def _fold(self) -> None:
        """Sum rows with the same random group and codes."""
        import numpy as np

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
        self._room = max(FOLD_ABOVE, 2 * len(self.keys))


def _little_endian(numbers: Numbers) -> bytes:
    """Return the numbers as bytes that every machine reads alike."""
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers.tobytes()
