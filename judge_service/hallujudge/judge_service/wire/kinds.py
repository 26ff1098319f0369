"""The types of items and evidence that messages can carry. Importing this loads no protobuf."""

from __future__ import annotations

from collections.abc import Mapping

from hallujudge.metrics import (
    AnswerEvidence,
    ChairEvidence,
    ChairItem,
    InfactEvidence,
    InfactItem,
    Item,
    OrderEvidence,
    PopeItem,
    TriHeEvidence,
    TriHeItem,
    VidhalItem,
)
from hallujudge.metrics.amber import AmberEvidence, AmberItem
from hallujudge.metrics.event_hallusion import EventHallusionEvidence, EventHallusionItem
from hallujudge.metrics.hallusion_bench import HallusionBenchEvidence
from hallujudge.metrics.hallusion_bench.question_groups import HallusionBenchItem
from hallujudge.metrics.mementos import MementosEvidence, MementosItem
from hallujudge.metrics.video_hallucer import VideoHallucerEvidence, VideoHallucerItem

__all__ = ["EVIDENCE", "KINDS", "TASKS", "has_messages"]

TASKS: Mapping[str, type[Item]] = {
    "chair": ChairItem,
    "pope": PopeItem,
    "tri_he": TriHeItem,
    "mementos": MementosItem,
    "vidhal": VidhalItem,
    "infact": InfactItem,
    "hallusion_bench": HallusionBenchItem,
    "amber": AmberItem,
    "event_hallusion": EventHallusionItem,
    "video_hallucer": VideoHallucerItem,
}
"""The items of each task; a new family adds its line here and its evidence below."""

EVIDENCE = (
    AmberEvidence,
    AnswerEvidence,
    ChairEvidence,
    HallusionBenchEvidence,
    EventHallusionEvidence,
    InfactEvidence,
    MementosEvidence,
    OrderEvidence,
    TriHeEvidence,
    VideoHallucerEvidence,
)
"""The evidence of all families."""

KINDS: Mapping[type[Item], str] = {item_type: kind for kind, item_type in TASKS.items()}
"""Type of an item -> its task."""


def has_messages(item: Item) -> bool:
    """Return whether items of this type can be sent; those of a family without a .proto can't."""
    return type(item) in KINDS
