"""When to call again: plain arithmetic without a clock or randomness of its own."""

from __future__ import annotations

from dataclasses import dataclass

from .failures import CallFailedError

__all__ = ["RetryPolicy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often, how long and after which waits a call is made again.

    A call is made ``attempts`` times while other calls are answered. While no call is answered, the
    judge is taken to be down, and its calls are repeated for ``outage_seconds``. A run that got no
    answer for ``give_up_after`` seconds ends.

    The wait before retry ``n`` is drawn evenly from ``[0, base * 2**n]``, at most
    ``longest_backoff`` seconds ("full jitter"). A Retry-After header is waited for with a little
    jitter added, unless it is longer than ``longest_wait``.
    """

    attempts: int = 5
    """Calls in all, the first included; 1: a call is never repeated."""
    outage_seconds: float = 90.0
    """How long an outage is waited for, counted from a call's first failure."""
    give_up_after: float = 300.0
    """Seconds without any answer after which the run ends."""
    base_seconds: float = 0.5
    """Upper end of the first wait."""
    longest_backoff: float = 8.0
    """Longest wait that this policy chooses, in seconds."""
    longest_wait: float = 60.0
    """Longest Retry-After that is waited for, in seconds."""

    def wait_before_next(self, failure: CallFailedError, attempt: int, random: float) -> float:
        """Return the seconds to wait before the next call.

        Args:
            failure: What went wrong.
            attempt: Calls made so far, at least 1.
            random: A number in [0, 1).
        """
        # Beyond 2**10 the backoff is at its longest anyway, and the power must not overflow.
        backoff = min(self.longest_backoff, self.base_seconds * 2.0 ** min(attempt - 1, 10))
        if failure.retry_after is None:
            return backoff * random
        return failure.retry_after + 0.1 * random * max(backoff, failure.retry_after)

    def asks_too_long(self, failure: CallFailedError) -> bool:
        """Whether the server asked to wait longer than this policy does."""
        return failure.retry_after is not None and failure.retry_after > self.longest_wait
