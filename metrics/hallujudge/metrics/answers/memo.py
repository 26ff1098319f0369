"""A bounded cache for parsers: only short answers are cached."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

__all__ = ["MAX_KEPT_CHARS", "remembered"]

MAX_KEPT_CHARS = 400
"""Longer answers rarely repeat."""

_KEPT_ANSWERS = 1 << 15
_ResultT = TypeVar("_ResultT")


def remembered(read: Callable[[str], _ResultT]) -> Callable[[str], _ResultT]:
    """Return the parser with a cache of at most 32,768 short answers."""
    kept = lru_cache(maxsize=_KEPT_ANSWERS)(read)

    @wraps(read)
    def parser(text: str) -> _ResultT:
        return kept(text) if len(text) <= MAX_KEPT_CHARS else read(text)

    return parser
