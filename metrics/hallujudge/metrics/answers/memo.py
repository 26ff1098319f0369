"""Parsers that remember short answers; long ones are read afresh, so that memory stays bounded."""

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
    """The same parser, which reads a short answer once: at most 32,768 of them are kept."""
    kept = lru_cache(maxsize=_KEPT_ANSWERS)(read)

    @wraps(read)
    def parser(text: str) -> _ResultT:
        return kept(text) if len(text) <= MAX_KEPT_CHARS else read(text)

    return parser
