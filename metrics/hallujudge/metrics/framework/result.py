"""The result of one item."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeAlias, TypeVar

__all__ = ["Evidence", "ItemResult", "JsonValue", "Outcome", "ScoredItem"]


JsonValue: TypeAlias = (
    "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] "
    "| tuple[JsonValue, ...] | None"
)


class Outcome(enum.Enum):
    """Whether an item was scored."""

    SCORED = "scored"
    """It has statistics and counts in every score."""

    UNSCORED = "unscored"
    """It has no statistics, and a reason says why. Unscored is not wrong."""


class Evidence(Protocol):
    """What an item's outcome is based on; every family has its own shape."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the evidence as ``items.jsonl`` has it."""
        ...


_EvidenceT = TypeVar("_EvidenceT", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredItem(Generic[_EvidenceT]):
    """What a metric makes of one item."""

    statistics: tuple[float, ...]
    """One number for each column of the metric."""
    scores: Mapping[str, float | None]
    """The item's own scores; None where one is not defined."""
    evidence: _EvidenceT
    """What the scores rest on; None where the pipeline knows it and the metric does not."""
    readable: bool = True
    """Whether the response could be parsed; an item whose response could not is unscored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemResult:
    """One item's outcome, statistics and evidence."""

    id: str
    """The item's id."""
    group_id: str
    """The cluster of intervals: the image or the video."""
    outcome: Outcome
    """Whether the item is scored."""
    reason: str = ""
    """Why it is not, such as ``RESPONSE_MISSING``."""
    detail: str = ""
    """The reason in words."""
    statistics: tuple[float, ...] = ()
    """What the aggregate is made of, one number for each of the metric's columns."""
    scores: Mapping[str, float | None] = field(default_factory=dict)
    """The item's own scores; None where one is not defined."""
    evidence: Evidence | None = None
    """What the outcome is based on."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Values that results may be grouped by."""

    def to_json(self) -> dict[str, JsonValue]:
        """The line of ``items.jsonl``."""
        line: dict[str, JsonValue] = {
            "id": self.id,
            "group_id": self.group_id,
            "outcome": self.outcome.value,
        }
        if self.outcome is Outcome.UNSCORED:
            line["reason"] = self.reason
            line["detail"] = self.detail
        if self.fields:
            # Sorted: on the wire they have no order.
            line["fields"] = dict(sorted(self.fields.items()))
        line["scores"] = dict(self.scores)
        line["evidence"] = self.evidence.to_json() if self.evidence is not None else {}
        return line
