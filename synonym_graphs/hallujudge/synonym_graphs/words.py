"""One spelling for a word, however it was typed."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Final

__all__ = ["SMALL_WORDS", "clean_word"]

SMALL_WORDS: Final = frozenset(
    ("a", "an", "the", "of", "to", "in", "on", "at", "up", "down", "out", "off", "with", "for")
) | {"over", "and"}
"""Words that say nothing of their own about a thing or an action."""

_LONGEST: Final = 256
"""Longer texts are no words; they are worked out anew each time, so that the cache stays small."""
_INVISIBLE: Final = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"))
_QUOTES: Final = {ord("’"): "'", ord("‘"): "'", ord("‐"): "-", ord("‑"): "-"}


def clean_word(word: str) -> str:
    """Return the word in lower case, composed, with single blanks and plain quotation marks.

    Composed and decomposed letters, wide letters, invisible marks and the several apostrophes are
    no differences between words.

    >>> clean_word(" Cafe\u0301  Table ") == clean_word("café table")
    True
    """
    return _clean(word) if len(word) <= _LONGEST else _clean.__wrapped__(word)


@lru_cache(maxsize=1 << 16)
def _clean(word: str) -> str:
    if word.isascii():
        return " ".join(word.lower().split())
    plain = unicodedata.normalize("NFKC", word).translate(_INVISIBLE).translate(_QUOTES)
    return " ".join(unicodedata.normalize("NFKC", plain.casefold()).split())
