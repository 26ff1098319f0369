"""Parsers of EventHallusion's answers and judgements."""

from __future__ import annotations

import re

from ..answers import YES_NO_PARSERS, YesNo

__all__ = ["parse_answer", "parse_judgement"]

_FIRST_WORD = re.compile(r"[^\w]*(yes|no)\b", re.IGNORECASE)


def parse_answer(text: str | None, variant: str) -> YesNo | None:
    """Return ``yes`` or ``no``; None if the answer can't be parsed.

    Args:
        text: The answer.
        variant: ``published``: its first letters are yes or no. ``corrected``: its first word is,
            or it is a clear yes or no by the parser ``strict``.
    """
    if text is None:
        return None
    if variant == "published":
        return _first_letters(text)
    return _first_word(text) or YES_NO_PARSERS["strict"](text)


def parse_judgement(text: str | None, variant: str) -> YesNo | None:
    """Return ``yes`` or ``no``; None if the reply can't be parsed.

    Args:
        text: The reply.
        variant: ``published``: its first letters without asterisks are yes or no. ``corrected``:
            its first word is.
    """
    if text is None:
        return None
    return _first_letters(text.replace("*", "")) if variant == "published" else _first_word(text)


def _first_letters(text: str) -> YesNo | None:
    start = text[:3].lower()
    return "yes" if start.startswith("yes") else "no" if start.startswith("no") else None


def _first_word(text: str) -> YesNo | None:
    found = _FIRST_WORD.match(text)
    return None if found is None else "yes" if found[1].lower() == "yes" else "no"
