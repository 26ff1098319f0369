"""Items of Tri-HE."""

from __future__ import annotations

from dataclasses import dataclass

from ..framework.item import Item
from ..framework.triplets import ClaimParts, Triplet

__all__ = ["TriHeItem"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TriHeItem(Item):
    """An answer to a question about an image, and what the image's scene graph says."""

    question: str = ""
    """The question that was answered."""
    response: str | None = None
    """What the model wrote. None: only its claims are known."""
    claims: tuple[ClaimParts, ...] | None = None
    """Claims already taken from the response. None: the extractor takes them."""
    reference_triplets: tuple[Triplet, ...] | None = None
    """The image's scene graph. None: no reference is known."""
    reference_objects: tuple[str, ...] = ()
    """Objects of the image beside those that the triplets name."""
    human_scores: tuple[float, ...] = ()
    """What people scored the response, one number for each annotator; for agreement alone."""
