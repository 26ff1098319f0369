"""What pipelines do with items alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from hallujudge.metrics import Evidence, Item, ItemResult, Outcome

from ..errors import InvalidInputError, Violation

__all__ = ["MAX_RESPONSE_CHARS", "checked", "scored", "unscored"]

MAX_RESPONSE_CHARS = 500_000
"""Longer responses are unscored: no caption is a novel, and hostile input must stay cheap."""

_ItemT = TypeVar("_ItemT", bound=Item)


def checked(items: Sequence[Item], item_type: type[_ItemT]) -> list[_ItemT]:
    """The items, all of one protocol's shape.

    Raises:
        InvalidInputError: Some are of another protocol, or have no id.
    """
    right = [item for item in items if isinstance(item, item_type) and item.id]
    if len(right) == len(items):
        return right
    violations = tuple(
        Violation(
            field=f"items[{index}]",
            description=f"needs an id and to be a {item_type.__name__}; got {type(item).__name__}",
        )
        for index, item in enumerate(items)
        if not isinstance(item, item_type) or not item.id
    )
    raise InvalidInputError(
        f"{len(violations)} of {len(items)} items can't be scored: {violations[0].description}",
        violations=violations[:100],
    )


def scored(
    item: Item,
    statistics: tuple[float, ...],
    scores: Mapping[str, float | None],
    evidence: Evidence,
) -> ItemResult:
    """The result of an item that has a score."""
    return ItemResult(
        id=item.id,
        group_id=item.group_id or item.id,
        outcome=Outcome.SCORED,
        statistics=statistics,
        scores=scores,
        evidence=evidence,
        fields=item.fields,
    )


def unscored(item: Item, reason: str, detail: str, evidence: Evidence | None = None) -> ItemResult:
    """The result of an item that has none, and why."""
    return ItemResult(
        id=item.id,
        group_id=item.group_id or item.id,
        outcome=Outcome.UNSCORED,
        reason=reason,
        detail=detail,
        evidence=evidence,
        fields=item.fields,
    )
