"""Removal of noun phrases that only measure another one: "a group of people"."""

from __future__ import annotations

from .phrases import Chunk, NounPhrase
from .words import listed

__all__ = ["without_measures"]

_COUNTING = listed("one some many most several both all each few two three none")


def without_measures(chunks: list[Chunk]) -> list[Chunk]:
    """Return the chunks without "a group of" and similar phrases before a noun phrase."""
    out: list[Chunk] = []
    i = 0
    while i < len(chunks):
        chunk = chunks[i]
        measured = (
            isinstance(chunk, NounPhrase)
            and (chunk.measured or (chunk.pronoun and chunk.text in _COUNTING))
            and i + 2 < len(chunks)
            and chunks[i + 1].text == "of"
        )
        target = chunks[i + 2] if measured else None
        if isinstance(chunk, NounPhrase) and isinstance(target, NounPhrase) and not target.pronoun:
            target.negated = target.negated or chunk.negated
            target.start, target.first = chunk.start, chunk.first
            i += 2
            continue
        out.append(chunk)
        i += 1
    return out
