"""Items of Tri-HE."""

from __future__ import annotations

from dataclasses import dataclass

from ..framework.item import Item
from ..framework.triplets import ClaimParts, Triplet

__all__ = ["TriHeItem"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TriHeItem(Item):
    """An answer to a question about an image, and the image's scene graph."""

    question: str = ""
    """The question."""
    response: str | None = None
    """What the model wrote; None if only its claims are known."""
    claims: tuple[ClaimParts, ...] | None = None
    """Claims of the response; None if they are to be extracted."""
    reference_triplets: tuple[Triplet, ...] | None = None
    """The image's scene graph; None without a reference."""
    reference_objects: tuple[str, ...] = ()
    """Objects of the image that the triplets do not name."""
    human_scores: tuple[float, ...] = ()
    """Human scores of the response, one for each annotator, to compute agreement."""
