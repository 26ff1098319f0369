"""The batches of a run: a deterministic sequence of items in input order."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hallujudge.metrics import Item

    from ..backends.base import Batch

__all__ = ["batches", "batches_async"]

_ITEMS = 64
_CHARS = 1 << 20


def batches(items: Iterable[Item]) -> Iterator[Batch]:
    """Yield batches that are small in number and in text, so that no message grows too large.

    A batch depends on nothing before its first item, so that a resumed run makes the same ones.
    """
    batch: list[Item] = []
    chars = 0
    for item in items:
        size = len(getattr(item, "response", None) or "")
        if batch and (len(batch) == _ITEMS or chars + size > _CHARS):
            yield batch
            batch, chars = [], 0
        batch.append(item)
        chars += size
    if batch:
        yield batch


async def batches_async(items: Iterable[Item]) -> AsyncGenerator[Batch, None]:
    """Yield the same batches, for backends that take them as they come."""
    for batch in batches(items):
        yield batch
