"""The batches of a run on their way to a server, until they are answered."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from .base import Batch

__all__ = ["Outbox"]


class Outbox:
    """Reads batches once, sends them in order, and sends those without an answer again.

    One task reads the batches, whatever becomes of the connections: gRPC cancels what reads for a
    call that failed.

    Args:
        batches: The batches.
        limit: Most items that are read and not yet answered. A larger batch is sent alone.
    """

    def __init__(self, batches: AsyncIterable[Batch], limit: int) -> None:
        self._batches = batches
        self._limit = limit
        self._unanswered: deque[Batch] = deque()
        self._items = 0
        self._sent = 0
        self._connection = 0
        self._ended = False
        self._changed = asyncio.Event()
        self._reader: asyncio.Task[None] | None = None
        self.error: Exception | None = None
        """The error that reading the batches ended with."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._connection += 1
        self._wake()
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)

    @property
    def outstanding(self) -> bool:
        """Whether the server owes an answer: to a batch, or to the end of all."""
        return bool(self._sent) or (self._ended and not self._unanswered)

    def connect(self) -> AsyncIterator[Batch]:
        """Return what a new connection sends: first what is not answered, then the rest.

        The connection before sends nothing more.
        """
        self._connection += 1
        self._sent = 0
        self._wake()
        if self._reader is None:
            self._reader = asyncio.ensure_future(self._read())
        return self._sending(self._connection)

    def answered(self) -> Batch:
        """Return the oldest batch without an answer, which has one now."""
        batch = self._unanswered.popleft()
        self._items -= len(batch)
        self._sent -= 1
        self._wake()
        return batch

    async def _sending(self, connection: int) -> AsyncIterator[Batch]:
        while connection == self._connection:
            if self._sent < len(self._unanswered):
                self._sent += 1
                yield self._unanswered[self._sent - 1]
            elif self.error is not None:
                raise self.error
            elif self._ended:
                return
            else:
                await self._changed.wait()

    async def _read(self) -> None:
        try:
            async for batch in self._batches:
                while self._items and self._items + len(batch) > self._limit:
                    await self._changed.wait()
                self._items += len(batch)
                self._unanswered.append(batch)
                self._wake()
        except Exception as err:
            self.error = err
        finally:
            self._ended = True
            self._wake()

    def _wake(self) -> None:
        """Wake everything that waits for a change."""
        self._changed.set()
        self._changed = asyncio.Event()
