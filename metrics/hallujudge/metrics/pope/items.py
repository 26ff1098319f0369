"""Items of POPE."""

from __future__ import annotations

from dataclasses import dataclass

from ..framework.item import Item

__all__ = ["PopeItem"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PopeItem(Item):
    """A yes/no question about an image, its label and the answer."""

    response: str | None
    """What the model wrote. None: it gave nothing, and the item is unscored."""
    question: str = ""
    """The question that was asked."""
    label: str
    """The right answer: ``yes`` or ``no``."""
