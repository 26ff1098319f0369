"""The batches of a run: a deterministic sequence of items in input order."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hallujudge.metrics import Item

    from ..backends.base import Batch

__all__ = ["batches", "batches_async"]

_ITEMS = 64
_MOST_ITEMS = 128
_CHARS = 1 << 20


def batches(items: Iterable[Item]) -> Iterator[Batch]:
    """Yield batches that are small in number and in text, so that no message grows too large.

    Consecutive items of one image stay in one batch if they can: a judge's prompts about an image
    begin with the same text, which its server then has in its prefix cache.

    A batch depends on nothing before its first item, so that a resumed run makes the same ones.
    """
    batch: list[Item] = []
    chars = 0
    for item in items:
        size = len(getattr(item, "response", None) or "")
        if batch and (
            chars + size > _CHARS or (len(batch) >= _ITEMS and _is_full(batch, item.group_id))
        ):
            yield batch
            batch, chars = [], 0
        batch.append(item)
        chars += size
    if batch:
        yield batch


def _is_full(batch: Batch, group: str) -> bool:
    """Return whether an item of a group begins a new batch, after 64 items or more."""
    return len(batch) == _MOST_ITEMS or not group or batch[-1].group_id != group


async def batches_async(items: Iterable[Item]) -> AsyncGenerator[Batch, None]:
    """Yield the same batches, for backends that take them as they come."""
    for batch in batches(items):
        yield batch
