"""Items of INFACT."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..framework.item import Item

__all__ = ["InfactItem", "InfactRun"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InfactRun:
    """A model's answer under one operator."""

    response: str | None
    """What the model wrote; None without a response."""
    confidence: float | None = None
    """The model's stated confidence in [0, 1]; None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InfactItem(Item):
    """A question about a video, answered under the base condition and under induced ones."""

    label: str
    """The right answer: a letter, or the answer's text."""
    dimension: str = ""
    """``faithfulness`` or ``factuality``."""
    category: str = ""
    """Leaf of the taxonomy."""
    order_sensitive: bool = False
    """Whether the answer depends on the order of the frames."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Choices: letter -> text; empty if unknown."""
    runs: Mapping[str, InfactRun] = field(default_factory=dict)
    """Operator -> run; the base condition is ``base``."""
