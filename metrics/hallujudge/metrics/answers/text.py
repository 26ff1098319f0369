"""What parsers do with text alike."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["NEGATIONS", "folded", "plain", "words_of"]

NEGATIONS = frozenset({"not", "never", "none", "nothing", "nobody", "neither", "nor", "without"})
"""Words that turn a statement round; words in ``n't`` do so too."""

_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "\u00a0": " "})
_MARKUP = re.compile(r"[*_`#]+")
_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


def plain(text: str) -> str:
    """The text without reasoning in tags, mark-up, odd quotes and full-width letters, stripped."""
    text = unicodedata.normalize("NFKC", text).translate(_QUOTES)
    if "</think>" in text:
        text = _THOUGHT.sub(" ", text)
    return _MARKUP.sub(" ", text).strip()


def words_of(text: str) -> list[str]:
    """Words in lower case, without punctuation; ``isn't`` is one."""
    return _WORD.findall(text.casefold())


def folded(text: str) -> str:
    """The words with single spaces: two texts that fold alike say the same words."""
    return " ".join(words_of(plain(text)))
