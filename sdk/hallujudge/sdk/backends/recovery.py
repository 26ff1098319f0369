"""Recovery of a run from a lost or stuck server: losses, progress, reconnection.

A connection may break while the server works on, which its start id shows: then batches are sent
again as they were. If the server died, one of its items may be the cause; see :class:`.Outbox`.

Nothing here does I/O, and clocks are passed in, so that tests need neither a server nor time.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge_service.tenancy import quota_text

from ..errors import DeadlineError, HallujudgeError, OverloadedError, UnavailableError

_LOG = logging.getLogger(__name__)

# A long progress_timeout is still checked this often.
_MOST_TICK_SECONDS = 5.0
# How often the reason to wait is logged.
_LOG_SECONDS = 30.0

# Pauses double from the first to the longest: a short break costs little time, and a server that
# is back is called within seconds.
_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 5.0
# The connection broke, the server is stopping, or it cancelled the call.
LOST = frozenset({"SERVER_UNREACHABLE", "SERVER_DRAINING", "CALL_CANCELLED"})
"""Reasons of errors after which a server may come back."""
# A key's calls come back with time. A server that stays full is given up, as one that is away.
_QUOTA = frozenset({"KEY_RATE_LIMIT", "KEY_CONCURRENCY_LIMIT"})
# The server ended a stream on which the run had nothing to send for a while.
_ENDED = frozenset({"STREAM_IDLE", "CALL_TOO_LONG"})


class Losses:
    """Decides whether lost connections mean that what was under way may have ended the server.

    Args:
        start_id: The start id of the server that is called; empty if it is unknown.
        on_answer: Called when the server answered a batch.
    """

    def __init__(self, start_id: str, on_answer: Callable[[], None] = lambda: None) -> None:
        self._start_id = start_id
        self._on_answer = on_answer
        self._count = 0
        self._new = False

    def add(self) -> None:
        """Record that a connection was lost; attempts to open it again may fail more often."""
        self._new = True

    def answered(self) -> None:
        """Record that the server answered a batch."""
        self._count = 0
        self._on_answer()

    def are_deadly(self, start_id: str) -> bool:
        """Return whether items may be the cause: the server died, or is lost again and again.

        An item may also make a server so slow that it is taken for lost.

        Args:
            start_id: The start id of the server that answers now.
        """
        new, self._new = self._new, False
        self._count += new
        before, self._start_id = self._start_id, start_id
        return new and (not before or before != start_id or self._count > 1)


class WaitLog:
    """Logs what a client waits for, every 30 seconds while it waits.

    Args:
        clock: A monotonic clock, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due = float("-inf")

    def note(self, reason: str) -> None:
        """Log a reason, if it is time."""
        if self._clock() >= self._due:
            self._due = self._clock() + _LOG_SECONDS
            _LOG.warning("waiting: %s", reason)


@dataclass(slots=True)
class ProgressWatch:
    """Ends a run whose server makes no progress.

    Progress is a result, another answer of a judge, or a reason why the server waits (the server
    itself limits such waits). The time that the caller takes does not count, nor does the time in
    which every batch is answered.
    """

    target: str
    """The server's address, for messages."""
    seconds: float
    """How long a server may work without any progress."""
    clock: Callable[[], float] = time.monotonic
    """A monotonic clock, in seconds."""
    log: WaitLog = field(default_factory=WaitLog)
    """Logs what the server waits for."""
    _accepted: bool = field(default=False, init=False)
    _answers: int = field(default=-1, init=False)
    _moved_at: float = field(init=False)

    def __post_init__(self) -> None:
        self.moved()

    @property
    def tick(self) -> float:
        """How often to check, in seconds."""
        return min(self.seconds / 4, _MOST_TICK_SECONDS)

    def moved(self) -> None:
        """Restart the timeout."""
        self._moved_at = self.clock()

    def check(self, response: pb.ScoreStreamResponse | None, *, outstanding: bool) -> None:
        """Record a message of the server, or a tick without one.

        Args:
            response: The message, or None if none arrived for one tick.
            outstanding: Whether the server owes an answer.

        Raises:
            DeadlineError: The server made no progress for too long.
        """
        moved = response is not None and self._is_progress(response)
        if moved or (self._accepted and not outstanding):
            self.moved()
        elif self.clock() - self._moved_at >= self.seconds:
            raise DeadlineError(
                f"the server at {self.target!r} made no progress for {self.seconds:g} s: it sent "
                "no results, its judges no answers, and it gave no reason to wait. Read the "
                "server's log; to allow more time, set Timeouts(progress_timeout=…)",
                metadata={"target": self.target},
            )

    def _is_progress(self, response: pb.ScoreStreamResponse) -> bool:
        self._accepted = True
        if response.WhichOneof("message") != "progress":
            return True
        progress = response.progress
        if progress.waiting:
            self.log.note(progress.waiting)
        before, self._answers = self._answers, progress.answers
        return bool(progress.waiting) or progress.answers != before


@dataclass(slots=True)
class Reconnecting:
    """Decides whether and when a call is repeated: its server was lost, or refused it for now.

    A server that names a time to retry after is obeyed.
    """

    target: str
    """The server's address, for messages."""
    seconds: float
    """How long the server may be away or full; 0 ends the run at once."""
    clock: Callable[[], float] = time.monotonic
    """A monotonic clock, in seconds."""
    jitter: Callable[[], float] = random.random
    """Returns a number from 0 to 1, so that clients do not come back all at once."""
    log: WaitLog = field(default_factory=WaitLog)
    """Logs what is waited for."""
    waiting: str = field(default="", init=False)
    """What is waited for, in a few words."""
    _lost_at: float | None = field(default=None, init=False)
    _tries: int = field(default=0, init=False)
    _answers: int | None = field(default=None, init=False)

    def back(self) -> None:
        """Record that the server answered a batch."""
        self._lost_at, self._tries = None, 0

    def progress(self, answers: int) -> None:
        """Record how many answers of judges the server has received; one more means it is back.

        A server that is stopped repeatedly may not complete a batch in between.
        """
        if self._answers is not None and answers > self._answers:
            self.back()
        self._answers = answers

    def lost(self, error: HallujudgeError) -> float:
        """Return how long to wait before the server is called again.

        Raises:
            HallujudgeError: The error itself if calling again would not help.
            UnavailableError: The server was away for too long.
        """
        if isinstance(error, OverloadedError) and error.retry_after is not None and self.seconds:
            return self._refused(error, error.retry_after)
        # A new connection counts answers from zero.
        self._answers = None
        if error.reason in _ENDED and self.seconds:
            self.back()
            return _FIRST_PAUSE
        if error.reason not in LOST or not self.seconds:
            raise error
        self.waiting = f"the server at {self.target} is away; it is tried again"
        now = self.clock()
        if self._lost_at is None:
            self._lost_at = now
            _LOG.warning("the connection to the server at %s was lost: %s", self.target, error)
        if now - self._lost_at >= self.seconds:
            raise UnavailableError(
                f"the server at {self.target!r} was lost in the middle of the run, and did not "
                f"come back for {self.seconds:g} s: {error}",
                metadata={"target": self.target},
            ) from error
        longest = min(_FIRST_PAUSE * 2.0**self._tries, _LONGEST_PAUSE)
        self._tries += 1
        # Clients that lost one server must not all come back in the same moment.
        pause = longest * (0.5 + self.jitter() / 2)
        return max(pause, error.retry_after or 0.0)

    def _refused(self, error: OverloadedError, pause: float) -> float:
        if error.reason in _QUOTA:
            key, limit = error.metadata.get("key", ""), error.metadata.get("limit", "")
            self.waiting = quota_text(error.reason, key, limit)
        else:
            now = self.clock()
            self._lost_at = now if self._lost_at is None else self._lost_at
            if now - self._lost_at >= self.seconds:
                raise error
            self.waiting = f"the server at {self.target} is full ({error.message})"
        self.log.note(self.waiting)
        return pause
