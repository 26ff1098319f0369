"""Start-time fair queueing between callers, and the sharing of a server's processor by it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Generic, TypeVar

from msgspec import Struct, field

from .tenancy import Chars, Work, tenancy
from .threads import end_when_set

# More lines than this are searched for callers who are back at the start.
_KEPT_LINES = 1024
_T = TypeVar("_T")
_R = TypeVar("_R")

# About a millisecond of matching: more of it in one piece does not run on a server's event loop.
_SLICE_CHARS = 10_000
# Between blocks, the clock says whether a slice has ended.
_BLOCK_VALUES, _BLOCK_CHARS = 32, 2_500
# A call passes the event loop about five times, and may wait for a slice each time.
_SLICE_SECONDS = 0.001
# Work in a thread makes others wait only for the interpreter lock.
_ROUND_SECONDS = 0.02
# More threads would only share the interpreter lock.
_THREADS = 2


class _Line(Struct):
    """One caller: what it used, and what it waits for."""

    tag: float
    """Its virtual time; the lowest is next."""
    weight: float = 1.0
    """Its share, relative to other callers."""
    inside: int = 0
    waiting: OrderedDict[asyncio.Future[None], float] = field(default_factory=OrderedDict)
    """Its requests in order, each with what it costs."""

    @property
    def idle(self) -> bool:
        return not self.inside and not self.waiting


class FairQueue:
    """Gives places to callers so that each gets its share, however many requests it has.

    Shares are equal, or as callers' weights: what a caller uses counts divided by its weight. This
    is start-time fair queueing (Goyal, Vin and Cheng, 1996). A caller's tag is what it used,
    and the lowest tag is next. A caller who comes back starts at the tag of the request that was
    served last: it has no claim to what it did not use meanwhile. The algorithm orders requests by
    where they start, so a cost may be added afterwards, when it is known.

    Args:
        places: How many requests are served at the same time.
        each: Whether a caller without a place gets one beyond them: requests that never end then
            stop no other caller.
    """

    def __init__(self, places: int = 1, *, each: bool = False) -> None:
        self._places = places
        self._each = each
        self._inside = 0
        self._waiting = 0
        self._virtual = 0.0
        self._lines: dict[str, _Line] = {}

    @property
    def inside(self) -> int:
        """Requests that have a place."""
        return self._inside

    @property
    def waiting(self) -> int:
        """Requests that wait for a place."""
        return self._waiting

    def resize(self, places: int) -> None:
        """Change the number of places."""
        self._places = places
        self._wake()

    async def enter(self, caller: str, *, cost: float = 0.0, weight: float = 1.0) -> None:
        """Wait for a place.

        Args:
            caller: The id of the caller.
            cost: What the request uses, as far as it is known.
            weight: The caller's share, relative to other callers.
        """
        line = self._line(caller)
        # Keys are edited while a server runs, so the newest weight counts.
        line.weight = weight
        # A call does not overtake waiting ones, even if a place is free for a moment.
        if (self._inside < self._places and not self._waiting) or self._has_own(line):
            self._admit(line, cost)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.waiting[turn] = cost
        self._waiting += 1
        try:
            await turn
        except asyncio.CancelledError:
            if turn in line.waiting:
                del line.waiting[turn]
                self._waiting -= 1
            # The place was given in the same moment: another request gets it.
            elif not turn.cancelled():
                self.leave(caller)
            raise

    def leave(self, caller: str, *, cost: float = 0.0) -> None:
        """Give a place back.

        Args:
            caller: The id of the caller.
            cost: What the request used beyond its earlier cost.
        """
        line = self._lines[caller]
        line.tag += cost / line.weight
        line.inside -= 1
        self._inside -= 1
        if self._waiting:
            self._wake()
        if not self._inside and not self._waiting:
            # Most often there is one, that of the caller.
            lines = self._lines.values()
            self._virtual = line.tag if len(lines) == 1 else max(line.tag for line in lines)
            self._lines.clear()

    def _line(self, caller: str) -> _Line:
        line = self._lines.get(caller)
        if line is None:
            if len(self._lines) >= _KEPT_LINES:
                self._forget()
            line = self._lines[caller] = _Line(self._virtual)
        elif line.idle:
            line.tag = max(line.tag, self._virtual)
        return line

    def _forget(self) -> None:
        kept = {
            caller: line
            for caller, line in self._lines.items()
            if not line.idle or line.tag > self._virtual
        }
        self._lines = kept

    def _admit(self, line: _Line, cost: float) -> None:
        self._virtual = max(self._virtual, line.tag)
        # A place beyond the others takes nothing from the other callers.
        if self._inside < self._places:
            line.tag += cost / line.weight
        line.inside += 1
        self._inside += 1

    def _has_own(self, line: _Line) -> bool:
        return self._each and not line.inside

    def _wake(self) -> None:
        while self._waiting and (self._each or self._inside < self._places):
            line = min(
                (
                    line
                    for line in self._lines.values()
                    if line.waiting and (self._inside < self._places or self._has_own(line))
                ),
                key=lambda line: line.tag,
                default=None,
            )
            if line is None:
                return
            turn, cost = line.waiting.popitem(last=False)
            self._waiting -= 1
            # A caller that was cancelled needs no place; the loop gives it to the next.
            if not turn.done():
                self._admit(line, cost)
                turn.set_result(None)


class CpuScheduler:
    """Shares the processor between callers.

    Short work runs on the event loop in slices. Between two slices the loop serves other calls, and
    the next slice is that of the caller who used least. Longer work runs in threads, for which
    callers queue in the same way: two threads for rounds of some milliseconds, and two for work
    that can't be divided, such as reports.

    Args:
        clock: Seconds on a clock that never goes back.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._slices = FairQueue()
        self._rounds = _Threads("rounds", clock)
        self._long = _Threads("long", clock)

    async def map(self, do: Work[_T, _R], values: Sequence[_T], chars: Chars[_T]) -> list[_R]:
        """Return the results of values, in order."""
        work = _Work(do, values, chars, self._clock)
        while not work.done:
            if work.next_is_long:
                await self._rounds.run(partial(work.go_on, _ROUND_SECONDS))
            else:
                await self._slice(work)
        return work.results

    async def _slice(self, work: _Work[_T, _R]) -> None:
        user = tenancy().user
        caller = user.id
        await self._slices.enter(caller, weight=user.limits.weight)
        began = used = self._clock()
        try:
            work.go_on(_SLICE_SECONDS)
            used = self._clock()
            if not work.done:
                # Other calls go on, and queue for the next slice while this one has its place.
                await asyncio.sleep(0)
        finally:
            self._slices.leave(caller, cost=used - began)

    async def in_thread(self, work: Callable[[], _T], *, short: bool = False) -> _T:
        """Run work in a thread.

        Args:
            work: The work.
            short: Whether it takes less than about a tenth of a second.
        """
        return await (self._rounds if short else self._long).run(work)


class _Work(Generic[_T, _R]):
    """Values that are worked on, block by block."""

    def __init__(
        self,
        do: Work[_T, _R],
        values: Sequence[_T],
        chars: Chars[_T],
        clock: Callable[[], float],
    ) -> None:
        self._do = do
        self._values = values
        self._chars = list(map(chars, values))
        self._clock = clock
        self.results: list[_R] = []

    @property
    def done(self) -> bool:
        return len(self.results) == len(self._values)

    @property
    def next_is_long(self) -> bool:
        return self._chars[len(self.results)] > _SLICE_CHARS

    def go_on(self, seconds: float) -> None:
        """Work for some time, on values of one kind."""
        began, kind = self._clock(), self.next_is_long
        while not self.done and self.next_is_long == kind:
            start = len(self.results)
            self.results += self._do(self._values[start : self._block_end(start)])
            if self._clock() - began >= seconds:
                return

    def _block_end(self, start: int) -> int:
        """Return the end of a block: one value, or more that take a part of a slice together."""
        end, chars = start, 0
        for size in self._chars[start : start + _BLOCK_VALUES]:
            chars += size
            if end > start and chars > _BLOCK_CHARS:
                break
            end += 1
        return end


class _Threads:
    """A few threads, for which callers queue."""

    def __init__(self, name: str, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._queue = FairQueue(_THREADS)
        self._executor = ThreadPoolExecutor(_THREADS, thread_name_prefix=f"hallujudge-{name}")

    async def run(self, work: Callable[[], _T]) -> _T:
        """Run work in a thread.

        If the call ends before the work, the thread keeps its place until the work ends, which
        :func:`check_wanted` hastens.
        """
        user = tenancy().user
        caller = user.id
        await self._queue.enter(caller, weight=user.limits.weight)
        unwanted, context = threading.Event(), copy_context()
        context.run(end_when_set, unwanted)
        running = self._executor.submit(context.run, work)
        running.add_done_callback(self._leaver(caller, self._clock()))
        try:
            return await asyncio.wrap_future(running)
        finally:
            unwanted.set()

    def _leaver(self, caller: str, began: float) -> Callable[[Future[_T]], None]:
        loop = asyncio.get_running_loop()

        def leave() -> None:
            self._queue.leave(caller, cost=self._clock() - began)

        def done(_: Future[_T]) -> None:
            with suppress(RuntimeError):  # the loop is closed, so no call is waiting
                # The queue belongs to the event loop, and this runs in the thread of the work.
                loop.call_soon_threadsafe(leave)

        return done
