"""What two short texts share that say the same, but for the forms of their words."""

from __future__ import annotations

import re
from functools import lru_cache

from .analysis import shared_analyser
from .words import listed

__all__ = ["lemma_key"]

# Words that one annotator writes and the next leaves out.
_UNSAID = listed("a an the is are was were be being of his her its their")
_WORD = re.compile(r"[^\W_]+(?:[-'][^\W_]+)*")


@lru_cache(maxsize=16_384)
def lemma_key(text: str) -> tuple[str, ...] | str:
    """What two phrases share that have the same words in the same order, each in any form of it.

    Articles, forms of "be" and possessives don't count: "is riding a" says what "riding" says. A
    phrase of nothing else is the same as itself alone.
    """
    words = (word for word in _WORD.findall(text.lower()) if word not in _UNSAID)
    return tuple(_lemma(word) for word in words) or text.casefold()


def _lemma(text: str) -> str:
    word = shared_analyser().book.word(text)
    return word.verb_lemma if word.verb > word.noun else word.noun_lemma
