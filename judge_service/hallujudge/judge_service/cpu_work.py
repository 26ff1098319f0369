"""Work of the processor: in place, in a thread, or where a server's scheduler puts it.

Every layer that computes calls these functions. They import nothing of the library. A server
installs a scheduler (:mod:`.engine.cpu_scheduler`) that shares the processor between callers.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextvars import ContextVar
from typing import Protocol, TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")

RULES_EFFORT = 100
"""Extraction by rules takes about as long for a character as matching does for so many."""
LONG_CHARS = 100_000
"""About ten milliseconds of matching."""

# About a tenth of a millisecond of matching, for which queueing would take longer than the work.
_FEW_CHARS = 1_000
_FEW_VALUES = 4


class Scheduler(Protocol):
    """Shares the processor between callers."""

    async def map(
        self, function: Callable[[_T], _R], values: Sequence[_T], chars: Callable[[_T], int]
    ) -> list[_R]:
        """Return the function of each value, in order."""

    async def in_thread(self, work: Callable[[], _T], *, short: bool = False) -> _T:
        """Run work in a thread, for which callers queue."""


_SCHEDULER: ContextVar[Scheduler | None] = ContextVar("hallujudge_scheduler", default=None)
_UNWANTED: ContextVar[threading.Event | None] = ContextVar("hallujudge_unwanted", default=None)


def use_scheduler(scheduler: Scheduler) -> None:
    """Make the running task, and the tasks that it starts, share the processor with others."""
    _SCHEDULER.set(scheduler)


def end_when_set(unwanted: threading.Event) -> None:
    """Make :func:`check_wanted` end the work of the running context once an event is set."""
    _UNWANTED.set(unwanted)


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
        values: The inputs of the work.
        chars: Returns how many characters of a caption take as long to match as a value.
    """
    if len(values) <= _FEW_VALUES and sum(map(chars, values)) <= _FEW_CHARS:
        return list(map(function, values))
    if (scheduler := _SCHEDULER.get()) is not None:
        return await scheduler.map(function, values, chars)
    if sum(map(chars, values)) <= LONG_CHARS:
        return list(map(function, values))
    return await asyncio.to_thread(lambda: list(map(function, values)))


async def in_thread(work: Callable[[], _T], *, short: bool = False) -> _T:
    """Run work in a thread; in a server, callers queue for the threads.

    Args:
        work: The work.
        short: Whether it takes less than about a tenth of a second.
    """
    if (scheduler := _SCHEDULER.get()) is not None:
        return await scheduler.in_thread(work, short=short)
    return await asyncio.to_thread(work)
