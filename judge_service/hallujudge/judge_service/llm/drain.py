"""Judge calls of work that is to stop: those under way go on, further ones are held back."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

__all__ = ["CallDrain", "HeldBackError", "is_held_back", "leave_to_call", "open_call"]

_T = TypeVar("_T")


class HeldBackError(Exception):
    """The work was ended, because all its judge calls are held back."""


class CallDrain:
    """Lets the judge calls of some work come to an end.

    A call that is cancelled after it was sent is paid for, and its reply is lost. From a moment on,
    no further call is therefore sent; the work is ended when every reply has arrived and is kept.

    Args:
        draining: Set from that moment on.
    """

    def __init__(self, draining: asyncio.Event) -> None:
        self._draining = draining
        self._open = 0
        self._held = 0
        self._works = 0
        self._idle = asyncio.Event()
        self._ended = asyncio.Event()

    async def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Return the result of work.

        Raises:
            HeldBackError: It was ended, because the calls of all work are held back.
        """
        token = _DRAIN.set(self)
        task = asyncio.ensure_future(work)
        _DRAIN.reset(token)
        idle = asyncio.ensure_future(self._idle.wait())
        self._works += 1
        try:
            await asyncio.wait({task, idle}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise HeldBackError
            return task.result()
        finally:
            task.cancel()
            idle.cancel()
            await asyncio.gather(task, idle, return_exceptions=True)
            self._works -= 1
            if self.is_closed and not self._works:
                # Calls that are left have callers of another kind, who wait for the same reply.
                self._ended.set()

    @property
    def is_closed(self) -> bool:
        """Whether no further call may be sent."""
        return self._draining.is_set() and not self._ended.is_set()

    async def leave(self) -> None:
        """Wait until a further call may be sent."""
        if not self.is_closed:
            return
        self._held += 1
        try:
            self._look()
            await self._ended.wait()
        finally:
            self._held -= 1

    @contextmanager
    def open(self) -> Iterator[None]:
        """Return a block with a call, from before it is sent until its reply is kept."""
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            self._look()

    def _look(self) -> None:
        if self.is_closed and 0 < self._held >= self._open:
            self._idle.set()


_DRAIN: ContextVar[CallDrain | None] = ContextVar("hallujudge_call_drain", default=None)


def is_held_back() -> bool:
    """Return whether the running task may send no further call."""
    drain = _DRAIN.get()
    return drain is not None and drain.is_closed


async def leave_to_call() -> None:
    """Wait until the running task may send a call."""
    if (drain := _DRAIN.get()) is not None:
        await drain.leave()


@contextmanager
def open_call() -> Iterator[None]:
    """Return a block with a call of the running task, until its reply is kept."""
    if (drain := _DRAIN.get()) is None:
        yield
        return
    with drain.open():
        yield
