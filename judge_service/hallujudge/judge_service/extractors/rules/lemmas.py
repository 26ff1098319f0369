"""Comparison of short phrases, ignoring the forms of their words."""

from __future__ import annotations

import re
from functools import lru_cache

from .analysis import shared_analyser
from .words import listed

__all__ = ["lemma_key"]

# Words that some annotators write and others omit.
_UNSAID = listed("a an the is are was were be being of his her its their")
_WORD = re.compile(r"[^\W_]+(?:[-'][^\W_]+)*")


@lru_cache(maxsize=16_384)
def lemma_key(text: str) -> tuple[str, ...] | str:
    """Return a key that is equal for phrases with the same words in any of their forms.

    The key ignores articles, forms of "be" and possessives: "is riding a" equals "riding". The key
    of a phrase that has only such words is the phrase itself.
    """
    words = (word for word in _WORD.findall(text.lower()) if word not in _UNSAID)
    return tuple(_lemma(word) for word in words) or text.casefold()


def _lemma(text: str) -> str:
    word = shared_analyser().book.word(text)
    return word.verb_lemma if word.verb > word.noun else word.noun_lemma
