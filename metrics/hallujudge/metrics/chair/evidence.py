"""Evidence of a CHAIR item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..framework.result import JsonValue

__all__ = ["ChairEvidence", "MentionVerdict"]


class MentionVerdict(NamedTuple):
    """An object that a caption mentions, and whether the image lacks it."""

    word: str
    """The word as the object matcher found it."""
    object: str
    """The object that the word names."""
    start: int
    """Position of the mention's first character in the caption."""
    end: int
    """Position after its last character."""
    hallucinated: bool
    """Whether the object is absent from the reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChairEvidence:
    """Evidence of a caption's CHAIR scores."""

    mentions: tuple[MentionVerdict, ...]
    """Every mention, in the order of the caption."""
    missed: tuple[str, ...] = ()
    """Reference objects that the caption does not mention."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return ``mentioned`` and ``hallucinated`` as [word, object] pairs with their spans."""
        mentions = self.mentions
        return {
            "mentioned": [[word, name] for word, name, _, _, _ in mentions],
            "hallucinated": [[word, name] for word, name, _, _, wrong in mentions if wrong],
            "mentioned_spans": [[start, end] for _, _, start, end, _ in mentions],
            "hallucinated_spans": [[start, end] for _, _, start, end, wrong in mentions if wrong],
            "missed": list(self.missed),
        }
