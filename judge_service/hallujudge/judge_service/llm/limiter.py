"""How many calls may be in flight: halved when the server says "too many", slowly grown back."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

__all__ = ["AdaptiveLimiter"]


class AdaptiveLimiter:
    """Additive increase, multiplicative decrease, and a pause that everybody keeps.

    Only rate limits shrink it; other faults say nothing about how much the server can take. Calls
    that were in flight when it shrank don't shrink it again: they are answers to the old pace.

    Args:
        most: Calls in flight at most.
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
        """Calls that may be in flight now."""
        return int(self._limit)

    @property
    def pause_left(self) -> float:
        """Seconds that the server asked everybody to stay away."""
        return max(0.0, self._paused_until - self._clock())

    async def acquire(self) -> float:
        """Waits for room; gives the time at which it was found, for :meth:`release`."""
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
        """Gives the room back.

        Args:
            started: What :meth:`acquire` gave.
            limited: Whether the server said "too many".
            retry_after: Seconds that it asked to stay away.
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
