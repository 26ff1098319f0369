"""What is known about a judge that does not answer: since when, why, and how long work waits."""

from __future__ import annotations

from collections.abc import Callable

from .failures import CallFailedError

__all__ = ["Outage"]


class Outage:
    """The failures since a judge last answered.

    Args:
        clock: Seconds on a clock that never goes back.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.calls = 0
        """Calls that somebody waits for."""
        self._busy_since = clock()
        self._answered_at = float("-inf")
        self.answers = 0
        """Calls answered so far."""
        self._since = clock()
        self.cause: CallFailedError | None = None
        """The first failure since the last answer; None: there is none."""

    @property
    def seconds(self) -> float:
        """Seconds since the first failure without an answer after it; 0: there is none."""
        return 0.0 if self.cause is None else self._clock() - self._since

    @property
    def seconds_without_answer(self) -> float:
        """Seconds for which calls have been waiting without any answer."""
        return self._clock() - max(self._answered_at, self._busy_since)

    def answered_since(self, moment: float) -> bool:
        """Whether the judge answered any call after a moment."""
        return self._answered_at > moment

    def call_begins(self) -> None:
        """Note that somebody waits for an answer."""
        if not self.calls:
            self._busy_since = self._clock()
        self.calls += 1

    def call_ends(self) -> None:
        """Note that somebody waits no longer."""
        self.calls -= 1

    def answered(self) -> None:
        """Note that the judge answered, if only to reject a request."""
        self.answers += 1
        self._answered_at = self._clock()
        self.cause = None

    def failed(self, failure: CallFailedError) -> None:
        """Note a failure that may be the judge's own trouble."""
        if self.cause is None:
            self.cause, self._since = failure, self._clock()
