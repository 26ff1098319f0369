"""Work outside the event loop: slow imports, shared loads, forks, cores, and computing.

Every layer that computes calls :func:`map_cpu` or :func:`in_thread`. Work runs in place, in a
thread, or where the scheduler of a server puts it (:mod:`.fair_queue`), which shares the
processor between callers. Of the library it imports :mod:`.tenancy` alone.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import CancelledError, Future
from functools import partial
from importlib import import_module
from pathlib import Path
from types import MethodType
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary, WeakMethod

from msgspec.structs import replace

from .tenancy import Chars, Scheduler, Work, tenancy, work_as

LOOK_SECONDS = 0.5
"""How often files are looked at that may change while a server runs."""
RULES_EFFORT = 100
"""Extraction by rules takes about as long for a character as matching does for so many."""
LONG_CHARS = 100_000
"""About ten milliseconds of matching."""

# About a tenth of a millisecond of matching, for which queueing would take longer than the work.
_FEW_CHARS = 1_000
# Each value has a cost beside its text, such as that of its result.
_FEW_VALUES = 4

_T = TypeVar("_T")
_R = TypeVar("_R")
_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")
_imported: set[str] = set()
_QUOTA_FILE = Path("/sys/fs/cgroup/cpu.max")


_renewals: WeakKeyDictionary[object, Callable[[Any], None]] = WeakKeyDictionary()
_left: list[object] = []


def renew_after_fork(renew: Callable[[], None]) -> None:
    """Call a method at the start of every process that is forked from this one.

    Args:
        renew: The method of an object; it replaces the object's threads, locks and connections.
    """
    assert isinstance(renew, MethodType), "a function belongs to no object"
    _renewals[renew.__self__] = renew.__func__


def leave_to_parent(*used: object) -> None:
    """Keep objects of the parent process for ever.

    Their destructors would end its connections, and wake its event loops.
    """
    _left.extend(used)


def _renew() -> None:
    for owner, renew in list(_renewals.items()):
        renew(owner)


if hasattr(os, "register_at_fork"):  # Windows has no forks
    os.register_at_fork(after_in_child=_renew)


async def import_in_thread(*names: str) -> None:
    """Import modules in a thread, so that the event loop keeps running.

    A later ``import`` statement finds the modules loaded.

    Args:
        names: The absolute names of the modules.

    Raises:
        ImportError: A module is not installed.
    """
    if not _imported.issuperset(names):
        await asyncio.to_thread(_import, names)


def _import(names: tuple[str, ...]) -> None:
    for name in names:
        import_module(name)
    # Recorded last: sys.modules already has modules that another thread is still importing.
    _imported.update(names)


async def shielded(work: concurrent.futures.Future[_T]) -> _T:
    """Wait for work in a thread; it goes on when the caller is cancelled.

    asyncio would log the error of work that no caller waits for any more, with a traceback.
    """
    result = asyncio.wrap_future(work)
    result.add_done_callback(_look_at)
    return await asyncio.shield(result)


def _look_at(result: asyncio.Future[_T]) -> None:
    if not result.cancelled():
        result.exception()


def look_regularly(look: Callable[[], None], name: str) -> None:
    """Call a method every half second in a thread of its own, as long as its object is used.

    A disk that hangs then delays no call.

    Args:
        look: The method of an object; it should not fail.
        name: The name of the thread.
    """
    threading.Thread(target=_look_on, args=(WeakMethod(look),), name=name, daemon=True).start()


def _look_on(look: WeakMethod[Callable[[], None]]) -> None:
    while (method := look()) is not None:
        method()
        del method  # the object must not stay for this thread
        time.sleep(LOOK_SECONDS)


class SharedLoads(Generic[_K, _V]):
    """Objects that were loaded last, by key; safe to use from several threads.

    A caller that asks while a load runs waits for it and gets the same object, or the same error. A
    failed load is forgotten, so that a later caller tries again.

    Args:
        kept: Things kept at most; the one that was asked for the longest ago goes first.
    """

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._loads: OrderedDict[_K, Future[_V]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: _K, load: Callable[[], _V]) -> _V:
        """Return the object of a key, loaded in this thread unless it is loaded already.

        Args:
            key: Which thing.
            load: Loads it. No lock is held meanwhile: other keys do not wait for it.
        """
        with self._lock:
            future = self._loads.get(key)
            mine = future is None
            if future is None:
                future = self._loads[key] = Future()
            self._loads.move_to_end(key)
            while len(self._loads) > self._kept:
                self._loads.popitem(last=False)
        # Outside the lock, so that other objects can be loaded meanwhile.
        if mine:
            self._run(key, future, load)
        return future.result()

    def _run(self, key: _K, future: Future[_V], load: Callable[[], _V]) -> None:
        try:
            future.set_result(load())
        except BaseException as err:  # other waiting threads must get the interrupt too
            with self._lock:
                if self._loads.get(key) is future:
                    del self._loads[key]
            future.set_exception(err)


def can_fork() -> bool:
    """Return whether this system can start the processes of a pool."""
    return hasattr(os, "fork") and bool(sys.executable)


def usable_cores(quota_file: Path = _QUOTA_FILE) -> int:
    """Return how many cores this process may use: those of its affinity, within its quota.

    Args:
        quota_file: The quota of a container, such as ``200000 100000`` for two cores.
    """
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows do not say which cores a process may use
        cores = os.cpu_count() or 1
    return max(1, min(cores, _quota(quota_file) or cores))


def _quota(file: Path) -> int | None:
    """Return the number of cores of a quota, rounded up; None without a quota."""
    try:
        time, period = file.read_text().split()
        return -(-int(time) // int(period))
    # A control group without a quota has the word "max" in the file.
    except (OSError, ValueError, ZeroDivisionError):
        return None


def of_each(function: Callable[[_T], _R]) -> Work[_T, _R]:
    """Return the work of a function of single values."""
    return partial(map, function)


def use_scheduler(scheduler: Scheduler) -> None:
    """Make the running task, and the tasks that it starts, share the processor with others."""
    work_as(replace(tenancy(), scheduler=scheduler))


def end_when_set(unwanted: threading.Event) -> None:
    """Make :func:`check_wanted` end the work of the running context once an event is set."""
    work_as(replace(tenancy(), unwanted=unwanted))


def check_wanted() -> None:
    """End work in a thread whose call has ended; long work calls this between its parts.

    Raises:
        CancelledError: The call has ended.
    """
    unwanted = tenancy().unwanted
    if unwanted is not None and unwanted.is_set():
        raise CancelledError


async def map_cpu(work: Work[_T, _R], values: Sequence[_T], *, chars: Chars[_T]) -> list[_R]:
    """Return the results of values, in order, while an event loop serves other calls.

    In a server, callers take turns. Elsewhere short work runs in place and long work in a thread:
    running every small batch in a thread halved the speed, because threads share the interpreter
    lock.

    Args:
        work: Does the values of a block; a server's scheduler makes blocks of less than a
            millisecond.
        values: The inputs of the work.
        chars: Returns how many characters of a caption take as long to match as a value.
    """
    if len(values) <= _FEW_VALUES and sum(map(chars, values)) <= _FEW_CHARS:
        return list(work(values))
    if (scheduler := tenancy().scheduler) is not None:
        return await scheduler.map(work, values, chars)
    if sum(map(chars, values)) <= LONG_CHARS:
        return list(work(values))
    return await asyncio.to_thread(lambda: list(work(values)))


async def in_thread(work: Callable[[], _T], *, short: bool = False) -> _T:
    """Run work in a thread; in a server, callers queue for the threads.

    Args:
        work: The work.
        short: Whether it takes less than about a tenth of a second.
    """
    if (scheduler := tenancy().scheduler) is not None:
        return await scheduler.in_thread(work, short=short)
    return await asyncio.to_thread(work)
