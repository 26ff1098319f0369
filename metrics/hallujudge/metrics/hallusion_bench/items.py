"""Items of HallusionBench."""

from __future__ import annotations

from dataclasses import dataclass

from ..framework.item import Item

__all__ = ["CATEGORIES", "RIGHT", "UNCLEAR", "WRONG", "HallusionBenchItem"]

CATEGORIES = ("VD", "VS")
"""Visual dependent (needs its figure) and visual supplement (has an answer without one)."""
WRONG, RIGHT, UNCLEAR = 0, 1, 2
"""Correctness of an answer, as the released files write it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HallusionBenchItem(Item):
    """A yes/no question about one figure of a set, and the answer."""

    response: str | None
    """What the model wrote; None without a response."""
    question: str = ""
    """The question."""
    label: str = ""
    """The right answer: ``yes`` or ``no``; empty if unknown."""
    details: str = ""
    """The right answer as a sentence."""
    category: str
    """``VD`` or ``VS``."""
    subcategory: str = ""
    """Kind of the figure, such as ``chart``."""
    set_id: str
    """The set, which has several figures and questions."""
    figure_id: str
    """The figure; ``0`` is the original, or in ``VS`` no figure at all."""
    question_id: str
    """The question, which is asked about every figure of the set."""
    visual_input: int
    """0: no figure is shown; 1: the original one; 2: an edited one."""
    correctness: int | None = None
    """The given correctness: 1 right, 0 wrong, 2 unclear; None without one."""
    same: bool | None = None
    """Whether the answer agrees with the one for figure 0; None if unknown."""

    @property
    def original(self) -> bool:
        """Whether this is figure 0, which answers about other figures are compared with."""
        return self.figure_id == "0"

    @property
    def without_figure(self) -> bool:
        """Whether no figure belongs to the question, so that an unclear answer is right."""
        return self.category == "VS" and self.original
