"""Ids of records: one text for every way to write an id."""

from __future__ import annotations

from array import array
from decimal import Decimal
from itertools import pairwise

from hallujudge.judge_service.installation import is_whole
from hallujudge.metrics.framework.claims import well_formed

from ..errors import ArchiveError
from .json_files import shown

MOST_EXACT = 1 << 53
"""Floats hold every whole number below this one; many above it become another one."""


def canonical_id(value: object, place: str) -> str:
    """Return an id as text: 42, 42.0, "42" and "42.0" are the same id.

    Tables have numbers with ``.0`` where pandas wrote a column of numbers that once lacked one.

    Raises:
        ArchiveError: The value is not an id: null, an empty text, a boolean, a fraction or a list.
    """
    if type(value) is int:
        return str(value)
    # Nearly all ids are of these kinds, and there are many.
    if type(value) is str and value.isascii():
        if value.isalnum():
            return value
        if (text := value.strip()) and not text.endswith(".0"):
            return text
    if isinstance(value, str) and (text := value.strip()):
        whole = text.removesuffix(".0")
        return whole if whole.isascii() and whole.isdigit() else well_formed(text)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, Decimal) and value.is_finite() and value == int(value):
        return str(int(value))
    if isinstance(value, float) and value.is_integer() and abs(value) < MOST_EXACT:
        return str(int(value))
    raise _not_an_id(value, place)


def _not_an_id(value: object, place: str) -> ArchiveError:
    if isinstance(value, float) and value.is_integer():
        return ArchiveError(
            f"{place}: the id {value:.0f} may have lost its last digits: tables hold numbers of "
            "more than 15 digits as floats; write ids as texts"
        )
    if isinstance(value, (bytes, bytearray)):
        return ArchiveError(f"{place}: the id is bytes ({value[:40]!r}); decode it to a text")
    return ArchiveError(f"{place}: {shown(value)} is not an id; give a whole number or a text")


def repeated(hashes: array[int]) -> set[int]:
    """Return the numbers that are there more than once."""
    if not hashes:
        return set()
    if not is_whole():
        return {a for a, b in pairwise(sorted(hashes)) if a == b}
    # In a fifth of the time and of the memory.
    import numpy as np

    ordered = np.sort(np.frombuffer(hashes, dtype=np.int64))
    found: set[int] = set(ordered[1:][ordered[1:] == ordered[:-1]].tolist())
    return found
