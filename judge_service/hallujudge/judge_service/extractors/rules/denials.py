"""Denials that stand before a phrase instead of a verb: "but not a dog", "nor the woman"."""

from __future__ import annotations

from .phrases import Chunk
from .wordbook import Word

__all__ = ["mark_denied"]


def mark_denied(chunks: list[Chunk], words: list[Word], tags: list[str]) -> None:
    """Mark the chunks that a negation denies directly.

    "Not" after a verb belongs to the verb, except before an adjective; after a comma or "but" it
    belongs to the phrase that follows.
    """
    for i, chunk in enumerate(chunks):
        if not chunk.first:
            continue
        before = tags[chunk.first - 1]
        linked = i > 0 and chunks[i - 1].kind in "C,"
        if before == "F":
            chunk.negated = chunk.negated or chunk.kind == "A" or (linked and chunk.kind in "NI")
        elif words[chunk.first - 1].lower == "nor":
            chunk.negated = chunk.negated or chunk.kind in "NVIA"
