"""Items of VideoHallucer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..framework.item import Item

__all__ = ["BASIC", "HALLUCINATION", "PAPER_SETS", "SETS", "VideoHallucerItem", "VideoHallucerRun"]

PAPER_SETS = (
    "object_relation",
    "temporal",
    "semantic_detail",
    "external_factual",
    "external_nonfactual",
)
"""The sets that the paper's overall accuracy is the mean of."""
SETS = (*PAPER_SETS, "interaction", "fact_detect")
"""All sets."""
BASIC = "basic"
"""The question about what the video shows."""
HALLUCINATION = "hallucination"
"""The question about what it does not show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoHallucerRun:
    """One question of a pair, and the answer."""

    response: str | None
    """What the model wrote; None without a response."""
    label: str
    """The right answer: ``yes`` or ``no``."""
    question: str = ""
    """The question."""
    video: str = ""
    """The video."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoHallucerItem(Item):
    """A basic question and its hallucinated question."""

    set_name: str
    """One of :data:`SETS`."""
    kind: str = ""
    """Kind of the question within its set."""
    runs: Mapping[str, VideoHallucerRun] = field(default_factory=dict)
    """``basic`` and ``hallucination`` -> question and answer."""
