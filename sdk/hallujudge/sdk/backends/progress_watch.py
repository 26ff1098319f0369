"""Noticing a server that is alive, but makes no progress."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge_service.engine.streams import RunProgress

from ..errors import DeadlineError, InvalidInputError

__all__ = ["PROGRESS_SECONDS", "STREAM_SECONDS", "ProgressWatch", "progress_of"]

PROGRESS_SECONDS = 600.0
"""How long a server may be at work without any progress; a judge gives up after 300 seconds."""
STREAM_SECONDS = 86_400.0
"""How long a whole run may take."""

_LOG = logging.getLogger(__name__)

_MOST_TICK_SECONDS = 5.0
_TOLD_EVERY = 30.0


class ProgressWatch:
    """Ends a run whose server makes no progress.

    Progress is a result, another answer of a judge, or a reason why the server waits: it gives up
    waiting by itself. Time that the caller spends, and time in which nothing was sent that is not
    answered, does not count.

    Args:
        target: The server's address, for messages.
        seconds: How long a server may be at work without any progress.
        clock: Seconds on a clock that never goes back.

    Raises:
        InvalidInputError: The time is not above 0.
    """

    def __init__(
        self, target: str, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if not seconds > 0 or math.isnan(seconds):
            raise InvalidInputError(
                f"progress_timeout is {seconds:g}; give a number of seconds above 0"
            )
        self._target = target
        self._seconds = seconds
        self._clock = clock
        self._accepted = False
        self._answers = -1
        self._moved_at = clock()
        self._told_at = float("-inf")

    @property
    def tick(self) -> float:
        """How often to check, in seconds."""
        return min(self._seconds / 4, _MOST_TICK_SECONDS)

    def moved(self) -> None:
        """Start the time again."""
        self._moved_at = self._clock()

    def check(self, response: pb.ScoreStreamResponse | None, *, outstanding: bool) -> None:
        """Note a message of the server, or that there was none.

        Args:
            response: The message; None: no message came for one tick.
            outstanding: Whether the server has work that it has not answered.

        Raises:
            DeadlineError: The server made no progress for too long.
        """
        moved = response is not None and self._is_progress(response)
        if moved or (self._accepted and not outstanding):
            self.moved()
        elif self._clock() - self._moved_at >= self._seconds:
            raise DeadlineError(
                f"the server at {self._target!r} made no progress for {self._seconds:g} s: it sent "
                "no results, its judges no answers, and it gave no reason to wait. Read the "
                "server's log; to allow more time, set Client(progress_timeout=…)",
                metadata={"target": self._target},
            )

    def _is_progress(self, response: pb.ScoreStreamResponse) -> bool:
        self._accepted = True
        if response.WhichOneof("message") != "progress":
            return True
        told = response.progress
        if told.waiting:
            self._tell(told.waiting)
        before, self._answers = self._answers, told.answers
        return bool(told.waiting) or told.answers != before

    def _tell(self, waiting: str) -> None:
        """Log why nothing moves, every half minute, as runs in this process do."""
        if self._clock() - self._told_at >= _TOLD_EVERY:
            self._told_at = self._clock()
            _LOG.warning("server at %s: %s", self._target, waiting)


def progress_of(message: pb.StreamProgress) -> RunProgress:
    """Return a message of progress as a value."""
    return RunProgress(answers=message.answers, waiting=message.waiting)
