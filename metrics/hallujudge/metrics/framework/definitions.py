"""What a metric declares about itself: papers, variants and options.

Help texts, tables, tooltips and the wire's description of a metric are made from these values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["PUBLISHED", "Direction", "OptionDefinition", "Paper", "Purpose", "VariantDefinition"]

Direction: TypeAlias = Literal["higher", "lower", "neither"]
"""Which end of a score's range is better."""

Purpose: TypeAlias = Literal["input", "metric", "judge"]
"""What an option sets; help pages group options by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """A paper that defines a metric, or a part of it."""

    title: str
    """Title of the paper."""
    authors: str
    """First author and others, such as ``Rohrbach et al.``."""
    year: int
    """Year of publication."""
    link: str = ""
    """arXiv id or DOI; empty without either."""
    where: str = ""
    """Section or formulas that define the scores."""

    @property
    def citation(self) -> str:
        """Return the citation on one line."""
        parts = (f"{self.authors}, {self.title}, {self.year}", self.link, self.where)
        return "; ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantDefinition:
    """A variant of a metric."""

    name: str
    """Name of the variant, such as ``published``."""
    meaning: str
    """Description in one sentence."""


PUBLISHED = VariantDefinition(
    name="published",
    meaning="Reproduces the released script exactly, including its known bugs.",
)
"""The variant of metrics whose authors released one script."""

# The help of an option stands beside its name, in a terminal of 80 columns.
_LINE = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionDefinition:
    """An option of a metric."""

    name: str
    """Name of the option."""
    default: str
    """Default value."""
    choices: tuple[str, ...] = ()
    """Allowed values; empty for free text."""
    meaning: str
    """Noun phrase that names what the option sets."""
    details: str = ""
    """What the choices mean, in one sentence; empty if the names say enough."""
    purpose: Purpose = "metric"
    """What the option sets."""
    number: bool = False
    """Whether the value is a number."""
    file: bool = False
    """Whether the value is a text that the command line reads from a file."""

    @property
    def help(self) -> str:
        """Return the meaning and the choices on one short line; of many choices, the first ones."""
        if not self.choices:
            return self.meaning
        *others, last = self.choices
        meaning = self.meaning.rstrip(".")
        text = f"{meaning}: {', '.join(others)} or {last}."
        while len(text) > _LINE and others:
            text = f"{meaning}: {', '.join(others)}, ..."
            others.pop()
        return text

    @property
    def sentence(self) -> str:
        """Return the meaning with its details."""
        return f"{self.meaning} {self.details}".rstrip()
