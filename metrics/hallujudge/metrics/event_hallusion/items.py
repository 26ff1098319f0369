"""Items of EventHallusion."""

from __future__ import annotations

from dataclasses import dataclass

from ..framework.item import Item

__all__ = ["SPLITS", "EventHallusionItem", "EventQuestion"]

SPLITS = ("entire", "interleave", "misleading")
"""The splits of the benchmark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventQuestion:
    """A yes/no question about a video, its label and the answer."""

    question: str = ""
    """The question."""
    label: str
    """The right answer: ``yes`` or ``no``."""
    response: str | None
    """What the model wrote; None without a response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventHallusionItem(Item):
    """A video with its questions, the model's description and a judge's reply about it."""

    split: str
    """One of :data:`SPLITS`."""
    questions: tuple[EventQuestion, ...] = ()
    """The questions about the video."""
    response: str | None = None
    """The model's description of the video; None without one."""
    judgement: str | None = None
    """The judge's reply about the description, which starts with yes or no; empty if the judge
    failed, None without a judge."""
    event: str = ""
    """What happens in the video, with which our judge compares the description: in the split
    ``interleave`` the unexpected event."""
