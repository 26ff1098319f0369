"""How many calls may be made at the same time: halved on a rate limit, slowly raised again."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

__all__ = ["AdaptiveLimiter"]


class AdaptiveLimiter:
    """Additive increase, multiplicative decrease, and a pause for all calls.

    Only rate limits lower it; other failures say nothing about the server's capacity. Calls that
    were under way when it was lowered do not lower it again: they were made at the old rate.

    Args:
        most: Calls at the same time at most.
        clock: Seconds on a clock that never goes back.
    """

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        self._most = most
        self._limit = float(most)
        self._clock = clock
        self._in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._shrunk_at = float("-inf")
        self._paused_until = float("-inf")

    @property
    def limit(self) -> int:
        """Calls that may be made at the same time now."""
        return int(self._limit)

    @property
    def running(self) -> int:
        """Calls under way."""
        return self._in_flight

    @property
    def waiting(self) -> int:
        """Calls that wait for a place."""
        return len(self._waiting)

    @property
    def pause_left(self) -> float:
        """Seconds for which the server asked not to be called."""
        return max(0.0, self._paused_until - self._clock())

    async def acquire(self) -> float:
        """Wait for a free place and return the time, for :meth:`release`."""
        while self._in_flight >= self.limit:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._wake()
                raise
        self._in_flight += 1
        return self._clock()

    def release(self, started: float, *, limited: bool, retry_after: float | None = None) -> None:
        """Free a place.

        Args:
            started: What :meth:`acquire` gave.
            limited: Whether the server reported a rate limit.
            retry_after: Seconds for which it asked not to be called.
        """
        self._in_flight -= 1
        if limited:
            self._shrink(started, retry_after)
        else:
            self._limit = min(self._most, self._limit + 1.0 / max(1.0, self._limit))
        for _ in range(max(0, self.limit - self._in_flight)):
            self._wake()

    def _shrink(self, started: float, retry_after: float | None) -> None:
        if started >= self._shrunk_at:
            self._limit = max(1.0, self._limit / 2)
            self._shrunk_at = self._clock()
        if retry_after is not None:
            self._paused_until = max(self._paused_until, self._clock() + retry_after)

    def _wake(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
