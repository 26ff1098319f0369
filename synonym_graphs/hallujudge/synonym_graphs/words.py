"""Normalised spelling of words."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Final

__all__ = ["SMALL_WORDS", "clean_word"]

SMALL_WORDS: Final = frozenset(
    ("a", "an", "the", "of", "to", "in", "on", "at", "up", "down", "out", "off", "with", "for")
) | {"over", "and"}
"""Function words, which do not identify an object or a behaviour."""

_LONGEST: Final = 256
"""Longer texts are not words. They bypass the cache, which keeps it small."""
# The soft hyphen, zero-width characters, the word joiner and the byte order mark.
_INVISIBLE: Final = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"))
_QUOTES: Final = {ord("’"): "'", ord("‘"): "'", ord("‐"): "-", ord("‑"): "-"}


def clean_word(word: str) -> str:
    """Return the word in lower case, composed, with single blanks and plain quotation marks.

    Spellings that differ only in composed or wide letters, invisible characters or the kind of
    apostrophe become equal.

    >>> clean_word(" Cafe\u0301  Table ") == clean_word("café table")
    True
    """
    return _clean(word) if len(word) <= _LONGEST else _clean.__wrapped__(word)


@lru_cache(maxsize=1 << 16)
def _clean(word: str) -> str:
    if word.isascii():
        return " ".join(word.lower().split())
    # Case folding can decompose letters, so the result is normalised again.
    plain = unicodedata.normalize("NFKC", word).translate(_INVISIBLE).translate(_QUOTES)
    return " ".join(unicodedata.normalize("NFKC", plain.casefold()).split())
