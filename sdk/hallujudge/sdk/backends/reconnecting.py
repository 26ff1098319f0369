"""When a server that was lost in the middle of a run is tried again. Nothing here does I/O."""

from __future__ import annotations

import logging
import math
import random
import time
from collections.abc import Callable

from ..errors import HallujudgeError, InvalidInputError, UnavailableError

__all__ = ["RECONNECT_SECONDS", "Reconnecting"]

RECONNECT_SECONDS = 120.0
"""How long a server that was lost is tried again: restarting one with its models takes a minute."""

_LOG = logging.getLogger(__name__)

_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 5.0
# A connection that broke, a server that stops, and one that ended the call when its time was over.
_LOST = frozenset({"SERVER_UNREACHABLE", "SERVER_DRAINING", "CALL_CANCELLED"})
# Many clients come back to a server at once.
_LATER = frozenset({"SERVER_OVERLOADED"})
# The server ended a stream for which the run had nothing to send for a while.
_ENDED = frozenset({"STREAM_IDLE", "CALL_TOO_LONG"})


class Reconnecting:
    """Decides whether and when a run goes on after its server was lost.

    Args:
        target: The server's address, for messages.
        seconds: How long the server may be away; 0: not at all.
        clock: Seconds on a clock that never goes back.
        share: Returns a number from 0 to 1, so that clients do not come back all at once.

    Raises:
        InvalidInputError: The time is below 0.
    """

    def __init__(
        self,
        target: str,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
        share: Callable[[], float] = random.random,
    ) -> None:
        if seconds < 0 or math.isnan(seconds):
            raise InvalidInputError(
                f"reconnect_timeout is {seconds:g}; give a number of seconds, or 0 to end a run "
                "with its connection"
            )
        self._target = target
        self._seconds = seconds
        self._clock = clock
        self._share = share
        self._lost_at: float | None = None
        self._tries = 0
        self._answers: int | None = None

    @property
    def waiting(self) -> str:
        """What a run waits for, in one sentence."""
        return f"the server at {self._target} is away; it is tried again"

    def back(self) -> None:
        """Note that the server answered a batch."""
        self._lost_at, self._tries = None, 0

    def told(self, answers: int) -> None:
        """Note how many answers of judges the server tells of: one more shows that it is back.

        A server that is stopped again and again may answer no batch in between.
        """
        if self._answers is not None and answers > self._answers:
            self.back()
        self._answers = answers

    def lost(self, error: HallujudgeError) -> float:
        """Return how long to wait before the server is tried again.

        Raises:
            HallujudgeError: The error itself, if trying again does not help, or a server that was
                away for too long.
        """
        self._answers = None
        if error.reason in _ENDED and self._seconds:
            self.back()
            return _FIRST_PAUSE
        again = error.reason in _LOST or (self._lost_at is not None and error.reason in _LATER)
        if not again or not self._seconds:
            raise error
        now = self._clock()
        if self._lost_at is None:
            self._lost_at = now
            _LOG.warning("the connection to the server at %s was lost: %s", self._target, error)
        if now - self._lost_at >= self._seconds:
            raise UnavailableError(
                f"the server at {self._target!r} was lost in the middle of the run, and did not "
                f"come back for {self._seconds:g} s: {error}",
                metadata={"target": self._target},
            ) from error
        longest = min(_FIRST_PAUSE * 2.0**self._tries, _LONGEST_PAUSE)
        self._tries += 1
        pause = longest * (0.5 + self._share() / 2)
        return max(pause, error.retry_after or 0.0)
