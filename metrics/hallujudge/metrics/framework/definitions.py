"""What a metric declares about itself: papers, variants and options.

Help texts, tables, tooltips and the wire's description of a metric are made from these values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["Direction", "OptionDefinition", "Paper", "VariantDefinition"]

Direction: TypeAlias = Literal["higher", "lower", "neither"]
"""Which end of a score's range is the better one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """A paper that defines a metric, or a part of it."""

    title: str
    """Its title."""
    authors: str
    """First author and others, such as ``Rohrbach et al.``."""
    year: int
    """Year of publication."""
    link: str = ""
    """arXiv id or DOI; empty: it has neither."""
    where: str = ""
    """Section or formulas that define the scores."""

    @property
    def citation(self) -> str:
        """The paper in one line."""
        parts = (f"{self.authors}, {self.title}, {self.year}", self.link, self.where)
        return "; ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantDefinition:
    """A variant of a metric."""

    name: str
    """Its name, such as ``published``."""
    meaning: str
    """What it does, in one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionDefinition:
    """An option of a metric."""

    name: str
    """Its name."""
    default: str
    """Its value unless another is given."""
    choices: tuple[str, ...] = ()
    """The values it may take; empty: see the meaning."""
    meaning: str = ""
    """What it does, in one sentence."""
