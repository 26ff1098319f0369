"""Singular forms, the published way and ours; both remember what they worked out."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

_CACHE_SIZE: Final = 1 << 16
_LONGEST: Final = 64
"""Longer words are worked out anew each time, so that the caches stay small."""

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
"""Endings of every plain word that textblob's rules change; the tests hold them against its tables.

Three words in four end otherwise, and trying some two hundred rules on each was most of the time
that a first pass over an archive took.
"""


@lru_cache(maxsize=_CACHE_SIZE)
def _published(word: str) -> str:
    # One rule of textblob's cuts words that begin with "oxen", however they end.
    plain = word.isascii() and word.isalpha() and word.islower()
    if plain and not word.endswith(CHANGED_ENDINGS) and not word.startswith("oxen"):
        return word
    from textblob.en.inflect import singularize

    return str(singularize(word))


def load_singulars() -> None:
    """Import the library of singular forms; without this call the first plural does."""
    import textblob.en.inflect  # noqa: F401


def published_singular(word: str) -> str:
    """Return what textblob's ``singularize`` makes of a word, slips included ("glass": "glas")."""
    return _published(word) if len(word) <= _LONGEST else _published.__wrapped__(word)


def singular(word: str) -> str:
    """Return the singular of a lower-case noun: textblob's rule, with its slips mended.

    It departs from the published rule for words that end in "ss", "us" or "is", which stay as they
    are, and for a short list of irregular nouns that the rule gets wrong.
    """
    known = _IRREGULAR.get(word)
    if known is not None:
        return known
    if word.endswith(_SAME):
        return word
    return published_singular(word)
