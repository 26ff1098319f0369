"""Items and their results: outcome, statistics, scores and evidence."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

CanonicalRecord: TypeAlias = "bool | int | str | Sequence[CanonicalRecord] | None"
"""What a hash is made of: texts and whole numbers in one order, in lists and tuples alike."""


class ItemRecords(NamedTuple):
    """What the hashes of an item are made of."""

    question: CanonicalRecord
    """What the model was asked, in one order: question, choices; None if unknown."""
    reference: CanonicalRecord
    """What the response is compared with, in one order; None without a reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One scored thing."""

    id: str
    """Id of the item, unique within one run."""
    group_id: str = ""
    """Cluster for intervals: the image or video. Empty for the item's own id."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Values that results may be grouped by."""

    def records(self) -> ItemRecords:
        """Return what is hashed of the item. Neither its id nor the image or video is part of it.

        The reference is as read, before a graph normalises it, so that no setting changes it.
        """
        return ItemRecords(question=None, reference=None)


if TYPE_CHECKING:
    JsonValue: TypeAlias = (
        "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] "
        "| tuple[JsonValue, ...] | None"
    )
else:
    # msgspec reads saved items by the types of their fields. It knows no union of such types.
    JsonValue: TypeAlias = Any


class Outcome(enum.Enum):
    """Whether an item was scored."""

    SCORED = "scored"
    """The item has statistics and counts in every score."""

    UNSCORED = "unscored"
    """The item has no statistics, and a reason says why. Unscored is not wrong."""


class Evidence(Protocol):
    """Evidence of an item's outcome; every family has its own fields."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the evidence as ``items.jsonl`` has it."""


_EvidenceT = TypeVar("_EvidenceT", covariant=True)


class ScoredItem(NamedTuple, Generic[_EvidenceT]):
    """Statistics and evidence of a scored item, which a pipeline takes apart at once."""

    statistics: tuple[float, ...]
    """One number for each column of the metric."""
    scores: Mapping[str, float | None]
    """The item's own scores; None if undefined."""
    evidence: _EvidenceT
    """What the scores are based on; None if the pipeline adds it later."""
    readable: bool = True
    """Whether the response could be parsed; otherwise the item is unscored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemResult:
    """One item's outcome, statistics and evidence."""

    id: str
    """The item's id."""
    group_id: str
    """Cluster for intervals: the image or video."""
    outcome: Outcome
    """Whether the item is scored."""
    reason: str = ""
    """Why the item is unscored, such as ``RESPONSE_MISSING``."""
    detail: str = ""
    """Details of the reason."""
    statistics: tuple[float, ...] = ()
    """Statistics of the item, one number for each of the metric's columns."""
    scores: Mapping[str, float | None] = field(default_factory=dict)
    """The item's own scores; None if undefined."""
    evidence: Evidence | None = None
    """What the outcome is based on."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Values that results may be grouped by."""
    question_hash: str = ""
    """Hash of the item's question; empty if it is unknown."""
    reference_hash: str = ""
    """Hash of the item's reference; empty in a run that does not say."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the line of ``items.jsonl``."""
        line = self.head()
        line["scores"] = dict(self.scores)
        line["evidence"] = self.evidence.to_json() if self.evidence is not None else {}
        return line

    def head(self) -> dict[str, JsonValue]:
        """Return what a line begins with: all that differs between items of the same outcome."""
        line: dict[str, JsonValue] = {
            "id": self.id,
            "group_id": self.group_id,
            # The value without the function that enumerations look it up with.
            "outcome": self.outcome._value_,
        }
        if self.outcome is Outcome.UNSCORED:
            line["reason"] = self.reason
            line["detail"] = self.detail
        if self.fields:
            # Sorted, since protobuf maps have no order.
            line["fields"] = dict(sorted(self.fields.items()))
        if self.question_hash:
            line["question_hash"] = self.question_hash
        if self.reference_hash:
            line["reference_hash"] = self.reference_hash
        return line
