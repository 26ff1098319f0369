"""Values of grouping fields as small numbers."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .metric import FloatArray

__all__ = ["MISSING", "GroupCodes"]

MISSING = ""
"""The group of items without a value."""


class GroupCodes:
    """Maps the values of a grouping field to small numbers.

    Args:
        split: Whether a value lists several groups, separated by commas.
    """

    def __init__(self, *, split: bool) -> None:
        self._of: dict[str, int] = {}
        self._split = split

    def code(self, value: str) -> int:
        """Return the number of a value, a new one if it has none."""
        return self._of.setdefault(value, len(self._of))

    @property
    def known(self) -> Iterable[str]:
        """Return the values in the order of their numbers."""
        return self._of

    def translated(self, other: GroupCodes, codes: Iterable[int]) -> list[int]:
        """Return numbers of another table as those of this one."""
        here = [self.code(value) for value in other._of]
        return [here[code] for code in codes]

    def parts(self, value: str) -> tuple[str, ...]:
        """Return the distinct groups that a value names; the empty group if it names none."""
        if not self._split:
            return (value,)
        parts = dict.fromkeys(part.strip() for part in value.split(","))
        return tuple(part for part in parts if part) or (MISSING,)

    @property
    def values(self) -> list[str]:
        """Return the groups in lexical order, independent of the order of items."""
        return sorted({part for value in self._of for part in self.parts(value)})

    def mask(self, value: str, codes: array[int]) -> NDArray[np.bool_]:
        """Return which rows belong to a group."""
        import numpy as np

        wanted = [code for known, code in self._of.items() if value in self.parts(known)]
        mask: NDArray[np.bool_] = np.isin(np.array(codes, dtype=np.int32), wanted)
        return mask

    def times(self, codes: array[int]) -> FloatArray:
        """Return the number of groups of each row."""
        import numpy as np

        counts = np.array([len(self.parts(value)) for value in self._of], dtype=np.float64)
        times: FloatArray = counts[np.array(codes, dtype=np.int32)]
        return times
