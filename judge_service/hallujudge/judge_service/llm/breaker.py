"""A circuit breaker: a judge that keeps failing is not called for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

__all__ = ["CircuitBreaker"]

_FIRST_SECONDS = 1.0


class CircuitBreaker:
    """Closed, open, or half-open.

    Closed: calls pass, and failures in a row are counted. Open, after ``threshold`` failures: no
    call passes for one second, then two, four and so on up to ``open_seconds``. Half-open, after
    each of these times: one call passes as a probe; it closes the circuit or opens it again.

    Args:
        threshold: Failures in a row that open the circuit.
        open_seconds: How long it stays open at most.
        clock: Seconds on a clock that never goes back.
    """

    def __init__(self, threshold: int, open_seconds: float, clock: Callable[[], float]) -> None:
        self._threshold = threshold
        self._longest = open_seconds
        self._clock = clock
        self._failures = 0
        self._openings = 0
        self._open_until: float | None = None
        self._probing = False
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def state(self) -> str:
        """``closed``, ``open`` or ``half-open``."""
        if self._open_until is None:
            return "closed"
        return "open" if self.seconds_left > 0 else "half-open"

    @property
    def seconds_left(self) -> float:
        """Seconds until a probe may pass; 0 if one may pass now."""
        if self._open_until is None:
            return 0.0
        return max(0.0, self._open_until - self._clock())

    def try_pass(self) -> bool:
        """Whether a call may be made now. A caller that passes reports its outcome."""
        if self._open_until is None:
            return True
        if self._probing or self.seconds_left > 0:
            return False
        self._probing = True
        return True

    async def wait(self, sleep: Callable[[float], Awaitable[None]], at_most: float) -> None:
        """Wait until the circuit may have changed.

        Args:
            sleep: Waits for seconds.
            at_most: Longest wait in seconds; a probe under way is waited for in any case.
        """
        if self._open_until is None:
            return
        if not self._probing:
            await sleep(min(self.seconds_left, at_most))
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        await turn

    def succeeded(self) -> None:
        """Note that the server answered."""
        self._failures = self._openings = 0
        self._open_until = None
        self._probe_is_back()

    def failed(self, *, at_once: bool = False) -> None:
        """Note that the server is in trouble.

        Args:
            at_once: Open the circuit without counting, as for an account without credit.
        """
        self._failures += 1
        if self._probing or (
            self._open_until is None and (at_once or self._failures >= self._threshold)
        ):
            seconds = min(self._longest, _FIRST_SECONDS * 2.0 ** min(self._openings, 20))
            self._openings += 1
            self._open_until = self._clock() + (self._longest if at_once else seconds)
        self._probe_is_back()

    def abandoned(self) -> None:
        """Note that a call ended without news of the server, for example by cancellation."""
        self._probe_is_back()

    def _probe_is_back(self) -> None:
        self._probing = False
        waiting, self._waiting = self._waiting, []
        for turn in waiting:
            if not turn.done():
                turn.set_result(None)
