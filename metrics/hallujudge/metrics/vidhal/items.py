"""Items of VidHal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..framework.item import Item

__all__ = ["VidhalItem"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VidhalItem(Item):
    """A choice or an order over the captions of one video."""

    response: str | None
    """What the model wrote: a letter, a caption, or letters in order; None without a response."""
    captions: tuple[str, ...] = ()
    """The captions by rank, the most faithful first."""
    display: Mapping[str, int] = field(default_factory=dict)
    """Letter shown to the model -> rank of its caption (1 is the most faithful)."""
