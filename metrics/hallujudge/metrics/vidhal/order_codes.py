"""Orders of letters as numbers, to count the most frequent ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..framework.metric import FloatArray

__all__ = ["MOST_COMMON", "expand_orders", "order_code"]

MOST_COMMON = tuple(f"commonest_order_{place}" for place in range(1, 9))
"""Columns for the eight most frequent orders of a table."""

_EXACT_LETTERS = 11  # 27 ** 11 < 2 ** 53, so that a float holds the code exactly.


def order_code(letters: Sequence[str]) -> float:
    """Return a number above 0: exact for up to eleven letters, otherwise a 48-bit hash."""
    if len(letters) <= _EXACT_LETTERS and all(len(x) == 1 and "A" <= x <= "Z" for x in letters):
        code = 0
        for letter in letters:
            code = code * 27 + ord(letter) - 64
        return float(code)
    text = "\0".join(letters).encode("utf-8", "surrogatepass")
    return float(int.from_bytes(blake2b(text, digest_size=6).digest()) + 1)


def expand_orders(codes: FloatArray) -> Mapping[str, FloatArray]:
    """Return a column of ones and zeros for each of the most frequent orders; code 0 means none."""
    import numpy as np

    orders, counts = np.unique(codes[codes != 0], return_counts=True)
    commonest = orders[np.lexsort([orders, -counts])][: len(MOST_COMMON)]
    columns = dict.fromkeys(MOST_COMMON, np.zeros(len(codes)))
    for name, order in zip(MOST_COMMON, commonest, strict=False):
        columns[name] = (codes == order).astype(np.float64)
    return columns
