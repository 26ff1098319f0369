"""Text normalization shared by the parsers."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["NEGATIONS", "folded", "plain", "words_of"]

NEGATIONS = frozenset({"not", "never", "none", "nothing", "nobody", "neither", "nor", "without"})
"""Words that negate a statement, in addition to words that end in ``n't``."""

_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "\u00a0": " "})
_MARKUP = re.compile(r"[*_`#]+")
_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


def plain(text: str) -> str:
    """Return text without tagged reasoning and mark-up, with plain quotes and letters, stripped."""
    text = unicodedata.normalize("NFKC", text).translate(_QUOTES)
    if "</think>" in text:
        text = _THOUGHT.sub(" ", text)
    return _MARKUP.sub(" ", text).strip()


def words_of(text: str) -> list[str]:
    """Return words in lower case, without punctuation; ``isn't`` is one word."""
    return _WORD.findall(text.casefold())


def folded(text: str) -> str:
    """Return the words joined by single spaces; texts with the same words give the same result."""
    return " ".join(words_of(plain(text)))
