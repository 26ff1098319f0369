"""Telling waiting tasks that a job changed."""

from __future__ import annotations

import asyncio
from contextlib import suppress

__all__ = ["Changes"]


class Changes:
    """Wakes the tasks that wait for a change of any job in this process."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    @property
    def next(self) -> asyncio.Event:
        """The event of the next change; take it before looking at what may change."""
        return self._next

    def notify(self) -> None:
        """Wake all tasks that wait."""
        self._next.set()
        self._next = asyncio.Event()

    async def wait(self, change: asyncio.Event, seconds: float) -> None:
        """Wait for a change, or for so long: another server may change a job unheard.

        Args:
            change: From :attr:`next`.
            seconds: The longest wait.
        """
        with suppress(TimeoutError):
            await asyncio.wait_for(change.wait(), seconds)
