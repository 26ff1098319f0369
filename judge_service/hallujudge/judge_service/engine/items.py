"""Validation of items, and construction of their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TypeVar

from hallujudge.metrics import Evidence, Item, ItemResult, Outcome
from hallujudge.metrics.framework.fast_values import maker_of
from hallujudge.metrics.framework.reasons import UnscoredReason

from ..errors import InvalidInputError, Violation

__all__ = ["checked", "scored", "unscored"]

_ItemT = TypeVar("_ItemT", bound=Item)

_SCORED = Outcome.SCORED
_made = maker_of(ItemResult, tuple(entry.name for entry in fields(ItemResult)))


def checked(items: Sequence[Item], item_type: type[_ItemT]) -> list[_ItemT]:
    """Return the items if all have a family's type and an id.

    Raises:
        InvalidInputError: Items have another type or no id.
    """
    valid = [item for item in items if isinstance(item, item_type) and item.id]
    if len(valid) == len(items):
        return valid
    violations = tuple(
        _violation(index, item, item_type)
        for index, item in enumerate(items)
        if not isinstance(item, item_type) or not item.id
    )
    raise InvalidInputError(
        f"{len(violations)} of {len(items)} items cannot be scored: "
        f"{violations[0].field} {violations[0].description}",
        violations=violations[:100],
    )


def _violation(index: int, item: Item, item_type: type[Item]) -> Violation:
    if isinstance(item, item_type):
        return Violation(field=f"items[{index}].id", description="is empty; give each item an id")
    return Violation(
        field=f"items[{index}]",
        description=f"is a {type(item).__name__}; this metric scores {item_type.__name__} values",
    )


def scored(
    item: Item,
    statistics: tuple[float, ...],
    scores: Mapping[str, float | None],
    evidence: Evidence,
) -> ItemResult:
    """Return the result of a scored item."""
    group = item.group_id or item.id
    return _made((item.id, group, _SCORED, "", "", statistics, scores, evidence, item.fields))


def unscored(
    item: Item, reason: UnscoredReason, detail: str, evidence: Evidence | None = None
) -> ItemResult:
    """Return the result of an unscored item, with its reason."""
    return ItemResult(
        id=item.id,
        group_id=item.group_id or item.id,
        outcome=Outcome.UNSCORED,
        reason=reason,
        detail=detail,
        evidence=evidence,
        fields=item.fields,
    )
