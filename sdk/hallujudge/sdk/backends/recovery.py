"""Recovery of a run from a lost or stuck server: unanswered batches, progress, reconnection."""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable
from typing import TYPE_CHECKING, Self

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge_service.engine.streams import RunProgress

from ..errors import DeadlineError, HallujudgeError, InvalidInputError, UnavailableError

if TYPE_CHECKING:
    from .base import Batch


class Outbox:
    """Reads batches once, sends them in order, and sends those without an answer again.

    One task reads the batches, whatever becomes of the connections: gRPC cancels what reads for a
    call that failed.

    Args:
        batches: The batches.
        limit: Most items that are read and not yet answered. A larger batch is sent alone.
    """

    def __init__(self, batches: AsyncIterable[Batch], limit: int) -> None:
        self._batches = batches
        self._limit = limit
        self._unanswered: deque[Batch] = deque()
        self._items = 0
        self._sent = 0
        self._connection = 0
        self._ended = False
        self._changed = asyncio.Event()
        self._reader: asyncio.Task[None] | None = None
        self.error: Exception | None = None
        """The error that reading the batches ended with."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._connection += 1
        self._wake()
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)

    @property
    def outstanding(self) -> bool:
        """Whether the server owes an answer: to a batch, or to the end of all."""
        return bool(self._sent) or (self._ended and not self._unanswered)

    def connect(self) -> AsyncIterator[Batch]:
        """Return what a new connection sends: first what is not answered, then the rest.

        The connection before sends nothing more.
        """
        self._connection += 1
        self._sent = 0
        self._wake()
        if self._reader is None:
            self._reader = asyncio.ensure_future(self._read())
        return self._sending(self._connection)

    def answered(self) -> Batch:
        """Return the oldest batch without an answer, which has one now."""
        batch = self._unanswered.popleft()
        self._items -= len(batch)
        self._sent -= 1
        self._wake()
        return batch

    async def _sending(self, connection: int) -> AsyncIterator[Batch]:
        while connection == self._connection:
            if self._sent < len(self._unanswered):
                self._sent += 1
                yield self._unanswered[self._sent - 1]
            elif self.error is not None:
                raise self.error
            elif self._ended:
                return
            else:
                await self._changed.wait()

    async def _read(self) -> None:
        try:
            async for batch in self._batches:
                while self._items and self._items + len(batch) > self._limit:
                    await self._changed.wait()
                self._items += len(batch)
                self._unanswered.append(batch)
                self._wake()
        except Exception as err:
            self.error = err
        finally:
            self._ended = True
            self._wake()

    def _wake(self) -> None:
        """Wake everything that waits for a change."""
        self._changed.set()
        self._changed = asyncio.Event()


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


RECONNECT_SECONDS = 120.0
"""How long a server that was lost is tried again: restarting one with its models takes a minute."""

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
