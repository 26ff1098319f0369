"""The base of every item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Item"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One scored thing."""

    id: str
    """Id of the item, unique within one run."""
    group_id: str = ""
    """Cluster for intervals: the image or video. Empty for the item's own id."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Values that results may be grouped by."""
