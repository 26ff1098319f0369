"""Work of the processor, in turns: no caller's work keeps other callers waiting."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Generic, TypeVar

from .caller import current_caller
from .fair_queue import FairQueue

__all__ = [
    "LONG_CHARS",
    "RULES_EFFORT",
    "Turns",
    "begin_turns",
    "check_wanted",
    "in_thread",
    "map_cpu",
]

_T = TypeVar("_T")
_R = TypeVar("_R")

RULES_EFFORT = 100
"""Extraction by rules takes about as long for a character as matching does for so many."""
LONG_CHARS = 100_000
"""About ten milliseconds of matching."""

# About a millisecond of matching: more of it in one piece does not run on a server's event loop.
_SLICE_CHARS = 10_000
# About a tenth of a millisecond of matching.
_FEW_CHARS = 1_000
_FEW_VALUES = 4
# A call passes the event loop about five times, and may wait for a slice each time.
_SLICE_SECONDS = 0.001
# Work in a thread makes others wait only for the interpreter lock.
_ROUND_SECONDS = 0.02
# More threads would only share the interpreter lock.
_THREADS = 2


class Turns:
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

    async def map(
        self, function: Callable[[_T], _R], values: Sequence[_T], chars: Callable[[_T], int]
    ) -> list[_R]:
        """Return the function of each value, in order."""
        work = _Work(function, values, lambda value: chars(value) > _SLICE_CHARS, self._clock)
        while not work.done:
            if work.next_is_long:
                await self._rounds.run(partial(work.go_on, _ROUND_SECONDS))
            else:
                await self._slice(work)
        return work.results

    async def _slice(self, work: _Work[_T, _R]) -> None:
        working_for = current_caller()
        caller = working_for.id
        await self._slices.enter(caller, weight=working_for.limits.weight)
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
    """Values on their way through a function."""

    def __init__(
        self,
        function: Callable[[_T], _R],
        values: Sequence[_T],
        is_long: Callable[[_T], bool],
        clock: Callable[[], float],
    ) -> None:
        self._function = function
        self._values = values
        self._is_long = is_long
        self._clock = clock
        self.results: list[_R] = []

    @property
    def done(self) -> bool:
        return len(self.results) == len(self._values)

    @property
    def next_is_long(self) -> bool:
        return self._is_long(self._values[len(self.results)])

    def go_on(self, seconds: float) -> None:
        """Work for some time, on values of one kind."""
        began, kind = self._clock(), self.next_is_long
        while not self.done and self.next_is_long == kind:
            self.results.append(self._function(self._values[len(self.results)]))
            if self._clock() - began >= seconds:
                return


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
        working_for = current_caller()
        caller = working_for.id
        await self._queue.enter(caller, weight=working_for.limits.weight)
        unwanted, context = threading.Event(), copy_context()
        context.run(_UNWANTED.set, unwanted)
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
            with suppress(RuntimeError):  # the loop is closed: no call waits any more
                loop.call_soon_threadsafe(leave)

        return done


_TURNS: ContextVar[Turns | None] = ContextVar("hallujudge_turns", default=None)
_UNWANTED: ContextVar[threading.Event | None] = ContextVar("hallujudge_unwanted", default=None)


def begin_turns(turns: Turns) -> None:
    """Make the running task, and the tasks that it starts, share the processor with others."""
    _TURNS.set(turns)


def check_wanted() -> None:
    """End work in a thread whose call has ended; long work calls this between its parts.

    Raises:
        CancelledError: The call has ended.
    """
    unwanted = _UNWANTED.get()
    if unwanted is not None and unwanted.is_set():
        raise CancelledError


async def map_cpu(
    function: Callable[[_T], _R], values: Sequence[_T], *, chars: Callable[[_T], int]
) -> list[_R]:
    """Return the function of each value, in order, while an event loop serves other calls.

    In a server, callers take turns. Elsewhere short work runs in place and long work in a thread:
    running every small batch in a thread halved the speed, because threads share the interpreter
    lock.

    Args:
        function: The work.
        values: What it is done for.
        chars: Returns how many characters of a caption take as long to match as a value.
    """
    if len(values) <= _FEW_VALUES and sum(map(chars, values)) <= _FEW_CHARS:
        # Queueing would take longer.
        return list(map(function, values))
    if (turns := _TURNS.get()) is not None:
        return await turns.map(function, values, chars)
    if sum(map(chars, values)) <= LONG_CHARS:
        return list(map(function, values))
    return await asyncio.to_thread(lambda: list(map(function, values)))


async def in_thread(work: Callable[[], _T], *, short: bool = False) -> _T:
    """Run work in a thread; in a server, callers queue for the threads.

    Args:
        work: The work.
        short: Whether it takes less than about a tenth of a second.
    """
    if (turns := _TURNS.get()) is not None:
        return await turns.in_thread(work, short=short)
    return await asyncio.to_thread(work)
