"""Items of Mementos."""

from __future__ import annotations

from dataclasses import dataclass

from ..framework.item import Item

__all__ = ["MementosItem"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MementosItem(Item):
    """A description of an image sequence and the human one, as texts or as keywords."""

    response: str | None = None
    """What the model wrote. None: it gave nothing, or only its keywords are known."""
    reference: str | None = None
    """The human description."""
    domain: str = ""
    """The domain whose synonym graphs are used; empty: the general ones."""
    reference_objects: tuple[str, ...] | None = None
    """Objects of the human description. None: the extractor takes them."""
    predicted_objects: tuple[str, ...] | None = None
    """Objects of the model's description."""
    reference_behaviors: tuple[str, ...] | None = None
    """Behaviours of the human description."""
    predicted_behaviors: tuple[str, ...] | None = None
    """Behaviours of the model's description."""
    episode_length: int | None = None
    """Events in the sequence, where known; else the reference behaviours are counted."""
