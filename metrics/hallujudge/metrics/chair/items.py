"""Items of CHAIR."""

from __future__ import annotations

from dataclasses import dataclass

from ..framework.item import Item

__all__ = ["ChairItem"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChairItem(Item):
    """A caption and the objects that its image shows."""

    response: str | None
    """What the model wrote. None: it gave nothing, and the item is unscored."""
    reference_objects: tuple[str, ...] | None
    """Objects of the image. None: no reference is known. Empty: the image shows none."""
