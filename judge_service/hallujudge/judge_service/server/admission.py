"""Limits of concurrent calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ..access.caller import Caller
from ..access.fair import FairQueue
from ..access.rates import CallerLimits
from ..errors import OverloadedError

__all__ = ["Admission"]


class Admission:
    """Limits the number of running calls and of calls that wait for them.

    Callers get places in turn. None has more than three quarters of them, so that there is always
    room for another caller.

    gRPC's own limits respond with a bare CANCELLED or without details, so that callers could not
    distinguish a busy server from a broken one.

    Args:
        running: The maximum number of running calls.
        waiting: The maximum number of waiting calls; further calls are rejected.
        retry_after: The time after which a rejected call should be repeated, in seconds.
    """

    def __init__(self, *, running: int, waiting: int, retry_after: float = 0.5) -> None:
        self._queue = FairQueue(running)
        self._limit = running + waiting
        self._share = _share(running)
        self._own_limit = _share(running) + _share(waiting)
        self._inside = 0
        self._own: dict[str, FairQueue] = {}
        self._idle: Counter[str] = Counter()
        self._retry_after = retry_after
        self.limits = CallerLimits()
        """What each caller uses of its own limits."""

    @asynccontextmanager
    async def admitted(self, caller: Caller, *, idle: bool = False) -> AsyncIterator[None]:
        """Wait until a call of a caller may run.

        Args:
            caller: The caller.
            idle: Whether the call only waits for something. Such calls take no places of calls
                that work; there are as many places for them as for all others.

        Raises:
            OverloadedError: The caller is at a limit of its own, or the queue is full.
        """
        with self.limits.call(caller):
            if idle:
                async with self._idle_place(caller):
                    yield
                return
            own = self._begin(caller)
            # One block, not a context for each queue: those took a tenth of a small call's time.
            try:
                await own.enter(caller.id, cost=1.0)
                try:
                    await self._queue.enter(caller.id, cost=1.0, weight=caller.limits.weight)
                    try:
                        yield
                    finally:
                        self._queue.leave(caller.id)
                finally:
                    own.leave(caller.id)
            finally:
                self._inside -= 1
                if not own.inside and not own.waiting:
                    self._own.pop(caller.id, None)

    @asynccontextmanager
    async def _idle_place(self, caller: Caller) -> AsyncIterator[None]:
        self._check("the server has", self._idle.total(), self._limit)
        self._check(f"{caller.name} has", self._idle[caller.id], self._own_limit)
        self._idle[caller.id] += 1
        try:
            yield
        finally:
            self._idle[caller.id] -= 1
            self._idle += Counter()  # forgets callers who have none

    def _begin(self, caller: Caller) -> FairQueue:
        """Count a call, and return the queue of its caller's own places."""
        own = self._own.get(caller.id) or FairQueue(self._share)
        self._check("the server has", self._inside, self._limit)
        self._check(f"{caller.name} has", own.inside + own.waiting, self._own_limit)
        self._inside += 1
        self._own[caller.id] = own
        return own

    def _check(self, who: str, inside: int, limit: int) -> None:
        if inside >= limit:
            calls = "call" if inside == 1 else "calls"
            raise OverloadedError(
                f"{who} {inside} {calls} running or waiting; try again in {self._retry_after:g} s",
                metadata={"limit": str(limit)},
                retry_after=self._retry_after,
            )


def _share(places: int) -> int:
    return places - places // 4
