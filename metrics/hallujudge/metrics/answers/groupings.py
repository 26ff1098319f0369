"""Groups of rows of a table of answers, whose values are columns of the table too."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..framework.arrays import BoolArray, FloatArray, np
from .answer_scores import Bundle, Count, ReadAnswer

if TYPE_CHECKING:
    from numpy.typing import NDArray


def value_of(name: str, meaning: str, of: Callable[[ReadAnswer], float]) -> Count:
    """Return the column of a value of the first answer, whose sum means nothing."""

    def first(bundle: Bundle) -> float:
        return of(bundle[0]) if bundle else 0

    return Count(name=name, meaning=meaning, of=first, label=True)


class Grouping:
    """Groups of rows.

    Args:
        keys: Key of each row's group.
        mask: The rows that count.
    """

    def __init__(self, keys: FloatArray, mask: BoolArray) -> None:
        self.rows = np.flatnonzero(mask)
        _, first, of = np.unique(keys[self.rows], return_index=True, return_inverse=True)
        self.of: NDArray[np.intp] = of
        self._first = self.rows[first]
        self._size = len(keys)

    def count(self, column: BoolArray) -> FloatArray:
        """Return for each group how many of its rows are true."""
        counts = np.bincount(self.of[column[self.rows]], minlength=len(self._first))
        return counts.astype(np.float64)

    def placed(self, values: BoolArray) -> FloatArray:
        """Return a column with each group's value in one of its rows."""
        out = np.zeros(self._size)
        # In one row only: the sum over all rows then counts each group once.
        out[self._first] = values
        return out
