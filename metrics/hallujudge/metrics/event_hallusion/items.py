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
    """The question that was asked."""
    label: str
    """The right answer: ``yes`` or ``no``."""
    response: str | None
    """What the model wrote. None: it gave nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventHallusionItem(Item):
    """A video with its questions, the model's description and a judge's reply about it."""

    split: str
    """One of :data:`SPLITS`."""
    questions: tuple[EventQuestion, ...] = ()
    """The questions about the video."""
    response: str | None = None
    """The model's description of the video. None: there is none."""
    judgement: str | None = None
    """What a judge replied when asked whether the description is right; it starts with yes or no.
    Empty: the judge failed. None: no judge was asked."""
    event: str = ""
    """What happens in the video, with which our judge compares the description: in the split
    ``interleave`` the unexpected event."""
