"""Answers that state uncertainty."""

from __future__ import annotations

from .text import folded

__all__ = ["says_it_is_unsure"]

_PHRASES = (
    "not sure",
    "unsure",
    "not certain",
    "uncertain",
    "don't know",
    "do not know",
    "no idea",
    "can't tell",
    "cannot tell",
    "can not tell",
    "can't see",
    "cannot see",
    "can't determine",
    "cannot determine",
    "cannot be determined",
    "can't be determined",
    "unable to",
    "impossible to",
    "not possible to",
    "no way to tell",
    "hard to say",
    "hard to tell",
    "difficult to say",
    "difficult to tell",
    "it depends",
    "unclear",
    "can't answer",
    "cannot answer",
    "can't assist",
    "cannot assist",
    "can't help",
    "cannot help",
    "insufficient information",
    "not enough information",
)
_PADDED = tuple(f" {phrase} " for phrase in _PHRASES)


def says_it_is_unsure(text: str) -> bool:
    """Return whether an answer states that it is unsure (papers/infact.txt, A.4)."""
    padded = f" {folded(text)} "
    return any(phrase in padded for phrase in _PADDED)
