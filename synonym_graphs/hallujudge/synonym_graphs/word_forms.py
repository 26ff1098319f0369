"""Forms of words: normalised spelling, and singulars by the published and the corrected rule."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Final

from .light_imports import textblob_inflect

SMALL_WORDS: Final = frozenset(
    ("a", "an", "the", "of", "to", "in", "on", "at", "up", "down", "out", "off", "with", "for")
) | {"over", "and"}
"""Function words, which do not identify an object or a behaviour."""

_LONGEST_CLEANED: Final = 256
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
    return _clean(word) if len(word) <= _LONGEST_CLEANED else _clean.__wrapped__(word)


@lru_cache(maxsize=1 << 16)
def _clean(word: str) -> str:
    if word.isascii():
        return " ".join(word.lower().split())
    # Case folding can decompose letters, so the result is normalised again.
    plain = unicodedata.normalize("NFKC", word).translate(_INVISIBLE).translate(_QUOTES)
    return " ".join(unicodedata.normalize("NFKC", plain.casefold()).split())


_CACHE_SIZE: Final = 1 << 16
_LONGEST_SINGULAR: Final = 64
"""Longer words bypass the caches, which keeps them small."""

# Nouns for which textblob's rules return a wrong singular, for example "leaves" -> "leave".
_IRREGULAR: Final = {
    "calves": "calf",
    "canoes": "canoe",
    "halves": "half",
    "hooves": "hoof",
    "knives": "knife",
    "leaves": "leaf",
    "loaves": "loaf",
    "moose": "moose",
    "movies": "movie",
    "shelves": "shelf",
    "shoes": "shoe",
    "skis": "ski",
    "taxis": "taxi",
    "wives": "wife",
    "wolves": "wolf",
}
_SAME: Final = ("ss", "us", "is")
"""Endings of words that are singular already: glass, bus, tennis."""


CHANGED_ENDINGS: Final = (
    *("s", "a", "i", "ae", "eaux", "ice", "our"),
    *("men", "people", "children", "teeth", "geese", "feet", "brethren", "kine", "oxen"),
)
"""Endings of every plain word that textblob's rules change; a test compares them with its tables.

Three words in four have another ending. Skipping them avoids trying about two hundred rules on
each, which dominated the first pass over an archive.
"""


@lru_cache(maxsize=_CACHE_SIZE)
def _published(word: str) -> str:
    # One of textblob's rules shortens words that begin with "oxen", whatever their ending.
    plain = word.isascii() and word.isalpha() and word.islower()
    if plain and not word.endswith(CHANGED_ENDINGS) and not word.startswith("oxen"):
        return word
    return str(textblob_inflect().singularize(word))


def load_singulars() -> None:
    """Import textblob's inflection rules, which the first plural would import otherwise."""
    textblob_inflect()


def published_singular(word: str) -> str:
    """Return textblob's ``singularize`` of a word, including its errors ("glass": "glas")."""
    return _published(word) if len(word) <= _LONGEST_SINGULAR else _published.__wrapped__(word)


def singular(word: str) -> str:
    """Return the singular of a lower-case noun by textblob's rule, with known errors corrected.

    Unlike the published rule, it keeps words that end in "ss", "us" or "is", and it has a short
    list of irregular nouns.
    """
    known = _IRREGULAR.get(word)
    if known is not None:
        return known
    if word.endswith(_SAME):
        return word
    return published_singular(word)
