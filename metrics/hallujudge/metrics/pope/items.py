"""Items of POPE."""

from __future__ import annotations

from dataclasses import dataclass

from ..framework.item import Item

__all__ = ["PopeItem"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PopeItem(Item):
    """A yes/no question about an image, its label and the answer."""

    response: str | None
    """What the model wrote; None if there is no response, which leaves the item unscored."""
    question: str = ""
    """The question."""
    label: str
    """The right answer: ``yes`` or ``no``."""
