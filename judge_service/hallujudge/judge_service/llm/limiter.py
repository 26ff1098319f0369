"""How many calls may be made at the same time: halved on a rate limit, slowly raised again."""

from __future__ import annotations

from collections.abc import Callable

from ..access.caller import current_caller
from ..access.fair import FairQueue

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
        self._queue = FairQueue(most)
        self._shrunk_at = float("-inf")
        self._paused_until = float("-inf")

    @property
    def limit(self) -> int:
        """Calls that may be made at the same time now."""
        return int(self._limit)

    @property
    def running(self) -> int:
        """Calls under way."""
        return self._queue.inside

    @property
    def waiting(self) -> int:
        """Calls that wait for a place."""
        return self._queue.waiting

    @property
    def pause_left(self) -> float:
        """Seconds for which the server asked not to be called."""
        return max(0.0, self._paused_until - self._clock())

    async def acquire(self) -> float:
        """Wait for a free place and return the time, for :meth:`release`.

        Callers get places in turn, however many calls each of them waits with.
        """
        caller = current_caller()
        await self._queue.enter(caller.id, cost=1.0, weight=caller.limits.weight)
        return self._clock()

    def release(self, started: float, *, limited: bool, retry_after: float | None = None) -> None:
        """Free a place.

        Args:
            started: What :meth:`acquire` gave.
            limited: Whether the server reported a rate limit.
            retry_after: Seconds for which it asked not to be called.
        """
        if limited:
            self._shrink(started, retry_after)
        else:
            self._limit = min(self._most, self._limit + 1.0 / max(1.0, self._limit))
        self._queue.resize(self.limit)
        self._queue.leave(current_caller().id)

    def _shrink(self, started: float, retry_after: float | None) -> None:
        if started >= self._shrunk_at:
            self._limit = max(1.0, self._limit / 2)
            self._shrunk_at = self._clock()
        if retry_after is not None:
            self._paused_until = max(self._paused_until, self._clock() + retry_after)
