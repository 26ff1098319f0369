"""A circuit breaker: a judge that keeps failing isn't asked for a while."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["CircuitBreaker"]


class CircuitBreaker:
    """Closed, open, or half-open.

    Closed: calls pass, and failures in a row are counted. Open, after ``threshold`` of them: no
    call passes for ``open_seconds``. Half-open, after that: one probe passes, and everybody else
    is turned away until it is back; it closes the circuit or opens it again.

    Args:
        threshold: Failures in a row that open the circuit.
        open_seconds: How long it stays open.
        clock: Seconds on a clock that never goes back.
    """

    def __init__(self, threshold: int, open_seconds: float, clock: Callable[[], float]) -> None:
        self._threshold = threshold
        self._open_seconds = open_seconds
        self._clock = clock
        self._failures = 0
        self._opened_at: float | None = None
        self._probing = False

    @property
    def state(self) -> str:
        """``closed``, ``open`` or ``half-open``."""
        if self._opened_at is None:
            return "closed"
        return "open" if self.seconds_left > 0 else "half-open"

    @property
    def seconds_left(self) -> float:
        """Seconds until a probe may pass; 0 when one may."""
        if self._opened_at is None:
            return 0.0
        return max(0.0, self._opened_at + self._open_seconds - self._clock())

    def try_pass(self) -> bool:
        """Whether a call may be made now. Who passes reports back, whatever happens."""
        if self._opened_at is None:
            return True
        if self._probing or self.seconds_left > 0:
            return False
        self._probing = True
        return True

    def succeeded(self) -> None:
        """The server answered."""
        self._failures, self._opened_at, self._probing = 0, None, False

    def failed(self, *, at_once: bool = False) -> None:
        """The server is in trouble.

        Args:
            at_once: Open the circuit without counting, as for an exhausted account.
        """
        self._failures += 1
        if at_once or self._probing or self._failures >= self._threshold:
            self._opened_at = self._clock()
        self._probing = False

    def abandoned(self) -> None:
        """The call ended without telling anything about the server, such as by cancellation."""
        self._probing = False
