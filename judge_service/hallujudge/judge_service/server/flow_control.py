"""Flow control: how many calls run, how long they last, and how much of a stream is unread."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeVar

from ..access import Caller, CallerLimits
from ..errors import DeadlineError, HallujudgeError, OverloadedError, UnavailableError
from ..fair_queue import FairQueue
from ..settings.server_settings import LimitSettings

# Results of ordinary items, with their evidence, are about twice as large as the items.
_RESULT_FACTOR = 2
# A server that stops refuses calls until none has come for this long, at most so many times.
_QUIET_SECONDS = 0.03
_REFUSALS = 20

_T = TypeVar("_T")
# How late a call may be ended: all calls share one timer, which is not set more often than this.
_LATE_SECONDS = 0.05
# A timer that fires later than this was held up: the process was stopped, or its machine.
_STOPPED_SECONDS = 1.0
# Health checks and the like at the same time. Each takes about 10 KB while its message is awaited.
_OPEN_CALLS = 500


class Admission:
    """Limits the number of running and of waiting calls.

    Callers get places in turn. No caller has more than three quarters of them, so that there is
    always room for another one. Of the places that callers without a key share because they have
    one address, no connection has more than three quarters.

    gRPC's own limits respond with a bare CANCELLED or without details: callers could not
    distinguish a busy server from a broken one.

    Args:
        running: The maximum number of running calls.
        waiting: The maximum number of waiting calls; further calls are rejected.
        retry_after: The time after which a rejected call should be repeated, in seconds.
    """

    def __init__(self, *, running: int, waiting: int, retry_after: float = 0.5) -> None:
        self._queue = FairQueue(running)
        self._shares = (_share(running), _share(_share(running)))
        self._own: dict[str, FairQueue] = {}
        self._working, self._idle, self._open = (
            _Counted(running, waiting, retry_after) for _ in range(3)
        )
        self.limits = CallerLimits()
        """The use of each caller's own limits."""

    def admitted(
        self, caller: Caller, *, idle: bool = False, open: bool = False
    ) -> AbstractAsyncContextManager[None]:
        """Return a context that is entered when a call may run, and left when the call ends.

        Args:
            caller: The caller.
            idle: Whether the call mostly waits. Such calls have places of their own, as many as
                all others, so that they never keep a working call out.
            open: Whether the call mostly waits and needs no key: the same, with other places.

        Raises:
            OverloadedError: The caller has reached one of its limits, or the queue is full.
        """
        counted = self._open if open else self._idle if idle else None
        return _Place(self, caller, counted)

    async def enter(self, caller: Caller) -> list[tuple[FairQueue, str]]:
        """Wait until a call of a caller may run; return its places, for :meth:`leave`.

        Raises:
            OverloadedError: The caller has too many calls, or the queue is full.
        """
        self._working.enter(caller)
        # The widest place is entered last: a caller at its limit delays no other caller.
        levels, own = caller.levels, self._own
        names = (*levels[1:], levels[-1])
        queues = [(self._queue, levels[0])]
        for level, share, name in zip(levels, self._shares, names, strict=False):
            if (queue := own.get(level)) is None:
                queue = own[level] = FairQueue(share)
            queues.insert(0, (queue, name))
        entered: list[tuple[FairQueue, str]] = []
        weight = caller.limits.weight
        try:
            for place in queues:
                await place[0].enter(place[1], cost=1.0, weight=weight)
                entered.append(place)
        # Such as the cancellation of a call that waits: its other places must become free.
        except BaseException:
            self.leave(caller, entered)
            raise
        return entered

    def leave(self, caller: Caller, entered: list[tuple[FairQueue, str]]) -> None:
        """Release the places of a call."""
        for queue, name in entered[::-1]:
            queue.leave(name)
        for level in self._working.leave(caller):
            del self._own[level]


class _Counted:
    """The number of calls inside: in all, of each caller, and of each connection of one.

    Args:
        running: The maximum number of running calls.
        waiting: The maximum number of waiting calls.
        retry_after: The time after which a rejected call should be repeated, in seconds.
    """

    def __init__(self, running: int, waiting: int, retry_after: float) -> None:
        share = _share(running) + _share(waiting)
        self._limit = running + waiting
        self._limits = (
            ("{} has", share),
            ("a connection of {} has", _share(_share(running)) + _share(_share(waiting))),
        )
        self._retry_after = retry_after
        self._inside = 0
        self._own: dict[str, int] = {}

    def enter(self, caller: Caller) -> None:
        """Count a call.

        Raises:
            OverloadedError: There are too many.
        """
        own, levels = self._own, caller.levels
        if self._inside >= self._limit:
            raise self._full("the server has", self._inside, self._limit)
        for level, (who, limit) in zip(levels, self._limits, strict=False):
            if (inside := own.get(level, 0)) >= limit:
                raise self._full(who.format(caller.name), inside, limit)
        self._inside += 1
        for level in levels:
            own[level] = own.get(level, 0) + 1

    def leave(self, caller: Caller) -> list[str]:
        """Release a place; return the levels of the caller that have no calls now."""
        own, empty = self._own, []
        self._inside -= 1
        for level in caller.levels:
            own[level] -= 1
            if not own[level]:
                del own[level]
                empty.append(level)
        return empty

    def _full(self, who: str, inside: int, limit: int) -> OverloadedError:
        calls = "call" if inside == 1 else "calls"
        return OverloadedError(
            f"{who} {inside} {calls} running or waiting; try again in {self._retry_after:g} s",
            metadata={"limit": str(limit)},
            retry_after=self._retry_after,
        )


class _Place:
    """A call from its admission to its end.

    A class and not a generator: with contexts of ``contextlib``, admission took a tenth of the
    processor time of a small call.
    """

    __slots__ = ("_admission", "_caller", "_counted", "_entered", "_use")

    def __init__(self, admission: Admission, caller: Caller, counted: _Counted | None) -> None:
        self._admission = admission
        self._caller = caller
        self._counted = counted
        self._entered: list[tuple[FairQueue, str]] = []
        self._use = admission.limits.call(caller)

    async def __aenter__(self) -> None:
        self._use.__enter__()
        try:
            if self._counted is not None:
                self._counted.enter(self._caller)
            else:
                self._entered = await self._admission.enter(self._caller)
        except BaseException:
            self._use.__exit__()
            raise

    async def __aexit__(self, *_: object) -> None:
        try:
            if self._counted is not None:
                self._counted.leave(self._caller)
            else:
                self._admission.leave(self._caller, self._entered)
        finally:
            self._use.__exit__()


def _share(places: int) -> int:
    """Return how many places one caller may take: three quarters, rounded up."""
    return places - places // 4


class CallClock:
    """Ends a call that lasts too long. Its place is released in every case.

    Args:
        times: How long calls may take.
        many: Whether the client streams messages, and is expected to continue.
        open: Whether the call needs no key.
        running: The clocks of all running calls.
    """

    def __init__(
        self, times: LimitSettings, *, many: bool, open: bool = False, running: RunningCalls
    ) -> None:
        self._times = times
        self._running = running
        self._many = many
        self.open = open
        """Whether the call needs no key."""
        self._begun = False
        self._stopped = False
        self._crowded = False
        self._over = False
        self._cancelled = False
        self._task: asyncio.Task[Any] | None = None
        self._cancelling = 0
        now = asyncio.get_running_loop().time()
        self._end = now + times.max_call_seconds
        self.due = min(now + times.first_message_seconds, self._end)
        """When the call is ended, in the time of the event loop."""

    def stop(self) -> None:
        """End the call now, because the server is stopping."""
        self._stopped = True
        self.over()

    def make_room(self) -> None:
        """End the call now, because newer ones need its place."""
        self._crowded = True
        self.over()

    def over(self) -> None:
        """End the call now."""
        if not self._over:
            self._over = True
            # Deferred, because this may run in the task of the call itself.
            asyncio.get_running_loop().call_soon(self._cancel)

    def moved(self) -> None:
        """Restart the idle time: a message arrived, or the client took one."""
        self._begun = True
        self.due = self._end
        if self._many:
            now = asyncio.get_running_loop().time()
            self.due = min(now + self._times.idle_seconds, self._end)
        self._running.look_at(self.due)

    def wait_again(self) -> None:
        """Restart the time for the next message: the client could not be heard meanwhile."""
        if self._many or not self._begun:
            times = self._times
            now = asyncio.get_running_loop().time()
            wait = times.idle_seconds if self._begun else times.first_message_seconds
            self.due = min(now + wait, self._end)

    def __enter__(self) -> CallClock:
        """Begin."""
        task = asyncio.current_task()
        assert task is not None, "a call has a task"
        self._task, self._cancelling = task, task.cancelling()
        self._running.begin(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the call, and raise the reason if this clock ended it.

        Raises:
            DeadlineError: The call lasted too long.
            UnavailableError: The server is stopping.
        """
        self._running.end(self)
        task, self._task = self._task, None
        # As in asyncio.timeout(): if others cancelled the task as well, it stays cancelled.
        alone = self._cancelled and task is not None and task.uncancel() <= self._cancelling
        if alone and kind is asyncio.CancelledError:
            raise self._error() from error

    def _cancel(self) -> None:
        if self._task is not None:
            self._cancelled = True
            self._task.cancel()

    def _error(self) -> HallujudgeError:
        if self._stopped:
            return UnavailableError(
                "the server stops and ended the call; call again when it is back, or another one",
                reason="SERVER_DRAINING",
            )
        if self._crowded:
            return OverloadedError(
                f"more than {_OPEN_CALLS} calls without a key wait for their messages, this one "
                "the longest; send the message with the call"
            )
        times = self._times
        if asyncio.get_running_loop().time() >= self._end:
            return DeadlineError(
                f"the call took longer than {times.max_call_seconds:g} s; use a new call for the "
                "rest",
                reason="CALL_TOO_LONG",
            )
        if not self._begun:
            return DeadlineError(
                f"no message came within {times.first_message_seconds:g} s; send one",
                reason="STREAM_IDLE",
            )
        return DeadlineError(
            f"nothing was sent or read for {times.idle_seconds:g} s; open a stream when there is "
            "something to send, and read its responses",
            reason="STREAM_IDLE",
        )


class RunningCalls:
    """The calls that are running, so that a server that stops can end them.

    gRPC would only cancel them: their clients would get a status without details, and the server's
    log a traceback for some of them.

    Args:
        times: How long calls may take.
    """

    def __init__(self, times: LimitSettings) -> None:
        self._times = times
        self._clocks: set[CallClock] = set()
        # Ordered by age.
        self._open: dict[CallClock, None] = {}
        self._refuses = False
        self._begun = 0
        # One timer for all calls: most calls end before it is due and never touch it.
        self._timer: asyncio.TimerHandle | None = None

    def clock(self, *, many: bool, open: bool = False) -> CallClock:
        """Return the clock of a new call.

        Args:
            many: Whether the client streams messages.
            open: Whether the call needs no key, and gets its only message at once. Where there are
                too many, the oldest one ends, so that health always answers.
        """
        return CallClock(self._times, many=many, open=open, running=self)

    def begin(self, clock: CallClock) -> None:
        """Add a call; once the server is stopping, it is ended immediately."""
        self._begun += 1
        self._clocks.add(clock)
        if clock.open:
            self._open[clock] = None
            if len(self._open) > _OPEN_CALLS:
                oldest = next(iter(self._open))
                # At once, so that the next call in need of room does not end the same one again.
                del self._open[oldest]
                oldest.make_room()
        if self._refuses:
            clock.stop()
        else:
            self.look_at(clock.due)

    def end(self, clock: CallClock) -> None:
        """Remove a call that has ended."""
        self._clocks.discard(clock)
        if clock.open:
            self._open.pop(clock, None)

    def look_at(self, moment: float) -> None:
        """Make sure that the timer fires at a moment, or before."""
        if self._timer is not None:
            if self._timer.when() <= moment:
                return
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(moment, self._look)

    def _look(self) -> None:
        assert self._timer is not None, "this is its callback"
        now = asyncio.get_running_loop().time()
        late, self._timer = now - self._timer.when(), None
        if late > _STOPPED_SECONDS:
            for clock in self._clocks:
                clock.wait_again()
        for clock in [clock for clock in self._clocks if clock.due <= now]:
            clock.over()
        later = [clock.due for clock in self._clocks if clock.due > now]
        if later:
            self.look_at(max(min(later), now + _LATE_SECONDS))

    async def refuse(self) -> None:
        """End every call that begins from now on; return when none comes any more.

        Calls that gRPC has received, and that have not begun, would be cancelled when it stops.
        """
        self._refuses = True
        for _ in range(_REFUSALS):
            before = self._begun
            await asyncio.sleep(_QUIET_SECONDS)
            if self._begun == before:
                return

    def stop(self) -> None:
        """End all running calls, and every call that begins later."""
        self._refuses = True
        for clock in tuple(self._clocks):
            clock.stop()


class Window:
    """Holds a stream back while too many of its batches are in progress or unread.

    A batch counts with an estimate until it is scored, and with the size of its results until the
    client has read them. One batch is always let through.

    Args:
        max_bytes: Maximum size of results, in bytes.
        max_items: Maximum number of items.
    """

    def __init__(self, max_bytes: int, max_items: int) -> None:
        self._max_bytes = max_bytes
        self._max_items = max_items
        self._batches: deque[Held] = deque()
        self._changed = asyncio.Event()

    @property
    def held(self) -> int:
        """The size of unread and expected results, in bytes."""
        return sum(batch.size for batch in self._batches)

    async def paced(
        self, requests: AsyncIterable[_T], measured: Callable[[_T], tuple[int, int]]
    ) -> AsyncIterator[tuple[_T, Held]]:
        """Yield requests, each when there is room for its results.

        Args:
            requests: The batches.
            measured: Returns the number of items of a batch, and its size in bytes.
        """
        async for request in requests:
            items, size = measured(request)
            batch = Held(items, _RESULT_FACTOR * size)
            # An empty window lets every batch through, however large it is.
            while self._batches and not self._fits(batch):
                self._changed.clear()
                await self._changed.wait()
            self._batches.append(batch)
            yield request, batch

    def made(self, batch: Held, size: int) -> None:
        """Record the size of a batch's results."""
        batch.size = size
        self._changed.set()

    def sent(self) -> None:
        """Record that the client read the oldest results."""
        self._batches.popleft()
        self._changed.set()

    def _fits(self, batch: Held) -> bool:
        items = sum(held.items for held in self._batches) + batch.items
        return items <= self._max_items and self.held + batch.size <= self._max_bytes


@dataclass(slots=True)
class Held:
    """A batch that is in progress or unread."""

    items: int
    size: int
