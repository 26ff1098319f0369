"""Limits of concurrent calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ..access.caller import Caller
from ..access.rates import CallerLimits
from ..errors import OverloadedError

__all__ = ["Admission"]


class Admission:
    """Limits the number of running calls and of calls that wait for them.

    gRPC's own limits respond with a bare CANCELLED or without details, so that callers could not
    distinguish a busy server from a broken one.

    Args:
        running: The maximum number of running calls.
        waiting: The maximum number of waiting calls; further calls are rejected.
        retry_after: The time after which a rejected call should be repeated, in seconds.
    """

    def __init__(self, *, running: int, waiting: int, retry_after: float = 0.5) -> None:
        self._room = asyncio.Semaphore(running)
        self._limit = running + waiting
        self._inside = 0
        self._idle = 0
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
            async with self._idle_place() if idle else self._place():
                yield

    @asynccontextmanager
    async def _idle_place(self) -> AsyncIterator[None]:
        self._check(self._idle)
        self._idle += 1
        try:
            yield
        finally:
            self._idle -= 1

    def _check(self, inside: int) -> None:
        if inside >= self._limit:
            raise OverloadedError(
                f"{inside} calls are running or waiting; try again in {self._retry_after:g} s",
                metadata={"limit": str(self._limit)},
                retry_after=self._retry_after,
            )

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        self._check(self._inside)
        self._inside += 1
        try:
            async with self._room:
                yield
        finally:
            self._inside -= 1
