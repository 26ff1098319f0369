"""Recovery of a run from a lost or stuck server: batches on their way, losses, reconnection.

A connection may break while the server works on, which its start id shows: then batches are sent
again as they were. If the server died, one of its items may be the cause. What was under way is
therefore sent again in groups of half as many items, one group at a time. An item that was alone at
a death comes after others that are sent alone, until another death of it would prove that it is the
cause.

Nothing here does I/O, and clocks are passed in, so that tests need neither a server nor time.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from math import isnan
from typing import Any, Self

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge_service.flights import half, is_proven
from hallujudge.judge_service.stopping import begun
from hallujudge.judge_service.tenancy import quota_text
from hallujudge.judge_service.wire.convert import result_from_proto, with_graphs
from hallujudge.metrics import ItemResult, Outcome

from ..errors import (
    DeadlineError,
    HallujudgeError,
    InternalError,
    OverloadedError,
    UnavailableError,
)
from . import Batch, BatchResult

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

_OTHER_RELEASE = (
    "the server returned results whose items are not those of the batch sent; install the same "
    "release on both sides"
)

_SCORED: dict[str, Any] = {"outcome": Outcome.SCORED}


@dataclass(slots=True, kw_only=True)
class _Parcel:
    """Items that are sent together."""

    first: int
    """Position of the first one in the run."""
    items: Batch
    is_suspect: bool = False
    """Whether it is sent alone, because the server died with it, or to compare it."""
    deaths: int = 0
    """How often the server died with nothing else under way."""

    def part(self, start: int, end: int, *, is_suspect: bool) -> _Parcel:
        """Return some of its items as a parcel of their own."""
        items = self.items[start:end]
        return _Parcel(first=self.first + start, items=items, is_suspect=is_suspect)


async def only(*batches: Batch) -> AsyncGenerator[Batch, None]:
    """Yield batches that are known already."""
    for batch in batches:
        yield batch


class Outbox:
    """Reads batches once, sends them in order, and sends unanswered ones again.

    A task of its own reads the batches because gRPC cancels the request iterator of a failed call.

    Args:
        batches: The batches.
        limit: Maximum number of items that are read but not answered. A larger batch is sent alone.
        on_answer: Called when the server has answered a batch.
    """

    def __init__(
        self,
        batches: AsyncIterable[Batch],
        limit: int,
        on_answer: Callable[[], None] = lambda: None,
    ) -> None:
        self._batches = batches
        self._on_answer = on_answer
        self._limit = limit
        # In the order in which they are sent; suspect ones come first.
        self._unanswered: deque[_Parcel] = deque()
        # Results of parcels that overtook others, by position.
        self._results: dict[int, BatchResult] = {}
        self._due = 0
        self._read = 0
        self._items = 0
        self._sent = 0
        self._deaths = 0
        self._survivors = 0
        self._connection = 0
        self._ended = False
        self._changed = asyncio.Event()
        self._reader: asyncio.Task[None] | None = None
        self.error: Exception | None = None
        """The error that reading the batches ended with."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        # Connections are numbered: a sender of an earlier one ends when it sees another number.
        self._connection += 1
        self._wake()
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)

    @property
    def outstanding(self) -> bool:
        """Whether the server owes an answer, to a batch or to the end of the stream."""
        return bool(self._sent) or (self._ended and not self._unanswered)

    def connect(self) -> AsyncIterator[Batch]:
        """Return what a new connection sends: unanswered batches first, then the rest.

        The previous connection sends nothing more.
        """
        self._connection += 1
        self._sent = 0
        self._wake()
        if self._reader is None:
            self._reader = begun(self._read_all())
        return self._sending(self._connection)

    @property
    def fatal(self) -> bool:
        """Whether the batch that was sent last is an item that is known to end the server."""
        parcel = self._unanswered[self._sent - 1]
        return parcel.deaths > 0 and self._is_proven(parcel, parcel.deaths)

    def answered(self, paired: Callable[[Batch], BatchResult]) -> list[BatchResult]:
        """Remove the oldest batch that was sent; return the results that are complete up to here.

        Args:
            paired: Returns the results of the batch, which have arrived.
        """
        parcel = self._unanswered[0]
        self._results[parcel.first] = paired(parcel.items)
        if parcel.is_suspect and len(parcel.items) == 1 and not self.fatal:
            self._survivors += 1
        self._unanswered.popleft()
        self._items -= len(parcel.items)
        self._sent -= 1
        self._on_answer()
        self._wake()
        complete = []
        while (result := self._results.pop(self._due, None)) is not None:
            complete.append(result)
            self._due += len(result.items)
        return complete

    def died(self) -> None:
        """Send what was under way again, in smaller groups: the server died."""
        lost = [self._unanswered.popleft() for _ in range(self._sent)]
        self._sent = 0
        count = sum(len(parcel.items) for parcel in lost)
        if count > 1:
            joined = _Parcel(
                first=lost[0].first, items=[item for parcel in lost for item in parcel.items]
            )
            size = half(count)
            groups = [joined.part(at, at + size, is_suspect=True) for at in range(0, count, size)]
            self._unanswered.extendleft(reversed(groups))
        elif lost:
            lost[0].is_suspect = True
            lost[0].deaths += 1
            self._deaths += 1
            self._put_after_others(lost[0])
        self._connection += 1
        self._wake()

    def _put_after_others(self, parcel: _Parcel) -> None:
        """Let items overtake one that was alone at a death, to compare it with them."""
        others: list[_Parcel] = []
        while self._unanswered and not self._is_proven(parcel, parcel.deaths + 1, len(others)):
            other = self._unanswered.popleft()
            others.append(other if other.deaths else other.part(0, 1, is_suspect=True))
            if len(other.items) > 1:
                rest = other.part(1, len(other.items), is_suspect=other.is_suspect)
                self._unanswered.appendleft(rest)
        self._unanswered.extendleft(reversed([*others, parcel]))

    def _is_proven(self, parcel: _Parcel, deaths: int, survivors: int = 0) -> bool:
        others = self._deaths - parcel.deaths
        return is_proven(deaths, other_deaths=others, survivors=self._survivors + survivors)

    async def _sending(self, connection: int) -> AsyncIterator[Batch]:
        while connection == self._connection:
            if self._may_send:
                self._sent += 1
                yield self._unanswered[self._sent - 1].items
            elif self._sent < len(self._unanswered) or not self._ended:
                await self._changed.wait()
            elif self.error is not None:
                raise self.error
            else:
                return

    @property
    def _may_send(self) -> bool:
        """Whether the next batch may be sent now; a suspect one is under way alone."""
        if self._sent >= len(self._unanswered):
            return False
        return not (self._sent and self._unanswered[0].is_suspect)

    async def _read_all(self) -> None:
        try:
            async for batch in self._batches:
                # A single batch above the limit is still read, or it would wait for ever.
                while self._items and self._items + len(batch) > self._limit:
                    await self._changed.wait()
                self._items += len(batch)
                self._unanswered.append(_Parcel(first=self._read, items=batch))
                self._read += len(batch)
                self._wake()
        except Exception as err:
            # Raised by the sender, once it has sent what was read before.
            self.error = err
        finally:
            self._ended = True
            self._wake()

    def _wake(self) -> None:
        """Wake everything that waits for a change."""
        self._changed.set()
        # A new event for the next change: waiting tasks hold the old one.
        self._changed = asyncio.Event()


def scored_alone(batch: Batch, response: pb.ScoreResponse) -> list[ItemResult]:
    """Return results that hold the scores of a response, and nothing else."""
    columns = response.columns
    if any(len(column.values) != len(batch) for column in columns):
        raise InternalError(_OTHER_RELEASE)
    unscored: dict[int, dict[str, Any]] = {
        one.position: {"outcome": Outcome.UNSCORED, "reason": one.reason, "detail": one.detail}
        for one in response.unscored
    }
    values = [[None if isnan(v) else v for v in column.values] for column in columns]
    names = [column.name for column in columns]
    scores = [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]
    return [
        ItemResult(id=item.id, group_id=item.id, scores=own, **unscored.get(at, _SCORED))
        for at, (item, own) in enumerate(zip(batch, scores, strict=True))
    ]


def paired_results(batch: Batch, messages: Iterable[pb.ItemResult]) -> BatchResult:
    """Return the results of a batch with its items.

    Raises:
        InternalError: They are not those of the batch.
    """
    results = [result_from_proto(result) for result in messages]
    # Results are matched by position, which a server of another release might not keep.
    if [item.id for item in batch] != [result.id for result in results]:
        raise InternalError(_OTHER_RELEASE)
    return BatchResult(items=batch, results=with_graphs(batch, results))


# A lost or stuck server ---------------------------------------------------------------------------


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
