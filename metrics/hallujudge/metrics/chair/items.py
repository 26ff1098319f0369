"""Items of CHAIR."""

from __future__ import annotations

from dataclasses import dataclass

from ..framework.item import Item

__all__ = ["ChairItem"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChairItem(Item):
    """A caption and the objects that its image shows."""

    response: str | None
    """The model's caption. None if it is missing; the item is then unscored."""
    reference_objects: tuple[str, ...] | None
    """Objects of the image. None without a reference; empty if the image shows none."""
