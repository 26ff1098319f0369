"""The base of every item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Item"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One scored thing."""

    id: str
    """Unique within one run."""
    group_id: str = ""
    """The cluster of intervals: the image or the video. Empty: the id itself."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Values that results may be grouped by."""
