"""The walk over the words of a caption: joins units and looks up what names an object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from .lexicon import Hit, Lexicon

WordFields: TypeAlias = tuple[str, str, int, int]
"""The fields of a ``Word`` as a plain tuple."""
Found: TypeAlias = tuple[str, str | None, int, int]
"""A word or unit of the lexicon: the word that it counts as, its root, start and end."""


def walk(words: Sequence[WordFields | None], lexicon: Lexicon) -> list[Found]:
    """Join units from left to right, and return every word and unit that has a meaning.

    Args:
        words: The words of the lexicon, with None where another token lies between two.
        lexicon: The meanings.
    """
    singles, units = lexicon.singles, lexicon.units
    hits: list[Found] = []
    index, count = 0, len(words)
    while index < count:
        word = words[index]
        index += 1
        if word is None:
            continue
        written, singular, start, end = word
        if written in units and index < count and words[index] is not None:
            found = _unit(words, index, lexicon, written)
            if found is not None:
                hit, index, end = found
                hits.append((*hit, start, end))
                continue
        single = singles.get(written) or singles.get(singular)
        if single is not None:
            hits.append((*single, start, end))
    return hits


def _unit(
    words: Sequence[WordFields | None], index: int, lexicon: Lexicon, first: str
) -> tuple[Hit, int, int] | None:
    """Return the longest unit that begins with ``first``, or None.

    Args:
        words: The words of the caption.
        index: The index of the word after ``first``.
        lexicon: The units.
        first: The first word.

    Returns:
        The meaning of the unit, the index of the word after it, and where it ends.
    """
    for middle, last, hit in lexicon.units[first]:
        behind = index + len(middle)
        final = words[behind] if behind < len(words) else None
        if final is None or (last != final[1] and last != final[0]):
            continue
        between = words[index:behind]
        if all(w is not None and w[0] == m for w, m in zip(between, middle, strict=True)):
            return hit, behind + 1, final[3]
    return None
