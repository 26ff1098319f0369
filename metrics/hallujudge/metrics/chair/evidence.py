"""Evidence of a CHAIR item."""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

from ..framework.result import JsonValue

__all__ = ["ChairEvidence", "MentionVerdict"]

# The fields of a verdict by position, for all mentions in one call.
_word_and_object = itemgetter(0, 1)
_span = itemgetter(2, 3)


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
        wrong = [mention for mention in mentions if mention[4]]
        return {
            "mentioned": list(map(_word_and_object, mentions)),
            "hallucinated": list(map(_word_and_object, wrong)),
            "mentioned_spans": list(map(_span, mentions)),
            "hallucinated_spans": list(map(_span, wrong)),
            "missed": self.missed,
        }
