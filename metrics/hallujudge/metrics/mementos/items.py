"""Items of Mementos."""

from __future__ import annotations

from dataclasses import dataclass

from ..framework.item import Item

__all__ = ["MementosItem"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MementosItem(Item):
    """A model's and a human description of an image sequence, as texts or as keywords."""

    response: str | None = None
    """What the model wrote; None without a response, or if only its keywords are known."""
    reference: str | None = None
    """The human description."""
    domain: str = ""
    """The domain whose synonym graphs are used; empty: the general ones."""
    reference_objects: tuple[str, ...] | None = None
    """Objects of the human description; None if they are to be extracted."""
    predicted_objects: tuple[str, ...] | None = None
    """Objects of the model's description."""
    reference_behaviors: tuple[str, ...] | None = None
    """Behaviours of the human description."""
    predicted_behaviors: tuple[str, ...] | None = None
    """Behaviours of the model's description."""
    episode_length: int | None = None
    """Number of events in the sequence; None counts the reference behaviours."""
