"""How much of one stream is in work or waits for its client to read it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable
from typing import TypeVar

__all__ = ["Held", "Window"]

# Results of ordinary items, with their evidence, compared with the items.
_RESULT_FACTOR = 2

_T = TypeVar("_T")


class Window:
    """Holds a stream back while too much of it is in work or unread.

    A batch counts with an estimate until its results are there, and with their size until the
    client has taken them. One batch is always let through.

    Args:
        max_bytes: The most bytes of results.
        max_items: The most items.
    """

    def __init__(self, max_bytes: int, max_items: int) -> None:
        self._max_bytes = max_bytes
        self._max_items = max_items
        self._batches: deque[Held] = deque()
        self._changed = asyncio.Event()

    @property
    def held(self) -> int:
        """The bytes of results that are unread or expected."""
        return sum(batch.size for batch in self._batches)

    async def paced(
        self, requests: AsyncIterable[_T], measured: Callable[[_T], tuple[int, int]]
    ) -> AsyncIterator[tuple[_T, Held]]:
        """Yield requests, each when there is room for what becomes of it.

        Args:
            requests: The batches.
            measured: Returns the number of a batch's items, and its bytes.
        """
        async for request in requests:
            items, size = measured(request)
            batch = Held(items, _RESULT_FACTOR * size)
            while self._batches and not self._fits(batch):
                self._changed.clear()
                await self._changed.wait()
            self._batches.append(batch)
            yield request, batch

    def made(self, batch: Held, size: int) -> None:
        """Note the size of a batch's results."""
        batch.size = size
        self._changed.set()

    def sent(self) -> None:
        """Note that the client took the oldest results."""
        self._batches.popleft()
        self._changed.set()

    def _fits(self, batch: Held) -> bool:
        items = sum(held.items for held in self._batches) + batch.items
        return items <= self._max_items and self.held + batch.size <= self._max_bytes


class Held:
    """A batch that is in work or unread."""

    __slots__ = ("items", "size")

    def __init__(self, items: int, size: int) -> None:
        self.items = items
        self.size = size
