"""When to call again: plain arithmetic, no clock and no randomness of its own."""

from __future__ import annotations

from dataclasses import dataclass

from .failures import CallFailedError

__all__ = ["RetryPolicy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Bounded retries with full jitter.

    The wait before retry ``n`` is drawn evenly from ``[0, base * 2**n]``, at most ``longest_wait``
    seconds; a server that names a time is waited for at least that long, with a little jitter so
    that waiting callers don't come back as one. A server that asks for longer than
    ``longest_wait`` isn't waited for.
    """

    attempts: int = 5
    """Calls in all, the first included."""
    base_seconds: float = 0.5
    """Upper end of the first wait."""
    longest_wait: float = 60.0
    """Longest single wait, in seconds."""

    def wait_before_next(
        self, failure: CallFailedError, attempt: int, random: float
    ) -> float | None:
        """Seconds to wait before the next call; None: give up.

        Args:
            failure: What went wrong.
            attempt: Calls made so far, at least 1.
            random: A number in [0, 1).
        """
        if not failure.kind.is_transient or attempt >= self.attempts:
            return None
        backoff = min(self.longest_wait, self.base_seconds * 2.0 ** (attempt - 1))
        if failure.retry_after is None:
            return backoff * random
        if failure.retry_after > self.longest_wait:
            return None
        return failure.retry_after + 0.1 * random * max(backoff, failure.retry_after)
