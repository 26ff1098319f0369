"""Items of AMBER."""

from __future__ import annotations

from dataclasses import dataclass

from ..framework.item import Item

__all__ = ["GENERATIVE", "KINDS", "AmberItem", "AmberObject"]

GENERATIVE = "generative"
"""The kind of descriptions; all other kinds are questions."""
KINDS = ("existence", "state", "number", "action", "relation")
"""The kinds of questions; state, number and action are attributes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AmberObject:
    """An object of an image, or a hallucination target."""

    word: str
    """Name of the object."""
    associated: tuple[str, ...] = ()
    """Words that are associated with it in the association table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AmberItem(Item):
    """A description of an image, or an answer to a question about it."""

    kind: str
    """``generative``, or the kind of question: ``existence``, ``state``, ``number``, ``action`` or
    ``relation``."""
    response: str | None = None
    """What the model wrote; None without a response, or if only its nouns are known."""
    question: str = ""
    """The question."""
    label: str = ""
    """The right answer to a question: ``yes`` or ``no``."""
    nouns: tuple[str, ...] = ()
    """The object words of a description: its nouns in the association table, with repetitions."""
    nouns_given: bool = False
    """Whether the nouns of a description are known; the list may be empty."""
    objects: tuple[AmberObject, ...] = ()
    """The objects that the image shows."""
    targets: tuple[AmberObject, ...] = ()
    """The hallucination targets: objects that the image lacks and that models tend to name."""
    safe_words: tuple[str, ...] = ()
    """Words that are never hallucinated."""
    vocabulary: tuple[str, ...] = ()
    """The words of the association table, where a description has a text to look for nouns in."""
