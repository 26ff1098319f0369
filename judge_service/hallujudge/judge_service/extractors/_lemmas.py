"""Whether two short texts say the same, but for the forms of their words."""

from __future__ import annotations

import re
from functools import lru_cache

from ._analysis import shared_analyser
from ._words import listed

__all__ = ["same_lemmas"]

# Words that one annotator writes and the next leaves out.
_UNSAID = listed("a an the is are was were be being of his her its their")
_WORD = re.compile(r"[^\W_]+(?:[-'][^\W_]+)*")


def same_lemmas(one: str, other: str) -> bool:
    """Whether two phrases have the same words in the same order, each in any form of it.

    Articles, forms of "be" and possessives don't count: "is riding a" says what "riding" says. A
    phrase of nothing else is the same as itself alone.
    """
    first, second = _lemmas(one), _lemmas(other)
    return first == second if first and second else one.casefold() == other.casefold()


@lru_cache(maxsize=16_384)
def _lemmas(text: str) -> tuple[str, ...]:
    words = (word for word in _WORD.findall(text.lower()) if word not in _UNSAID)
    return tuple(_lemma(word) for word in words)


def _lemma(text: str) -> str:
    word = shared_analyser().book.word(text)
    return word.verb_lemma if word.verb > word.noun else word.noun_lemma
