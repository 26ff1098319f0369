"""Threads and gates, with which tests prove an order of events without measuring time."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

__all__ = [
    "PATIENCE",
    "Gate",
    "busy_switching",
    "eventually",
    "result_while",
    "run_in_threads",
    "unseen_errors",
    "until",
]

T = TypeVar("T")
PATIENCE = 120.0
"""Seconds after which a test that waits for something fails; far more than a busy machine needs."""


def eventually(condition: Callable[[], bool]) -> bool:
    """Return whether a condition becomes true."""
    deadline = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def result_while(work: Future[T], progress: Callable[[], object]) -> T:
    """Return the result of work, which may take as long as it makes progress.

    Args:
        work: The work.
        progress: Returns what changes while it goes on.
    """
    seen = object()
    while not work.done() and (now := progress()) != seen:
        seen = now
        eventually(lambda: work.done() or progress() != seen)  # noqa: B023  # called at once
    return work.result(0)


async def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition is true, without blocking the event loop."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.01)


@contextmanager
def unseen_errors() -> Iterator[list[str]]:
    """Collect what asyncio would log of failed tasks whose error was never retrieved."""
    loop, found = asyncio.get_running_loop(), list[str]()
    before = loop.get_exception_handler()
    loop.set_exception_handler(lambda _loop, context: found.append(str(context["message"])))
    try:
        yield found
    finally:
        gc.collect()
        loop.set_exception_handler(before)


@contextmanager
def busy_switching() -> Iterator[None]:
    """Switch threads as often as possible, to provoke races."""
    before, trace = sys.getswitchinterval(), threading.gettrace()
    # CPython 3.11 refuses to set a trace function while another thread sets one, which takes
    # longer with an audit hook. So coverage does not measure the threads that start here.
    threading.settrace(None)
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
        threading.settrace(trace)


def run_in_threads(work: Callable[[], object], count: int) -> list[object]:
    """Run work in several threads at once; return each result or exception."""
    outcomes: list[object] = []

    def record() -> None:
        try:
            outcomes.append(work())
        except Exception as err:
            outcomes.append(err)

    threads = [threading.Thread(target=record) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


class Gate:
    """A gate at which work waits until the test opens it.

    Made on an event loop's thread, it refuses to stop that thread: work that should run beside the
    loop fails at once if it runs on it.
    """

    def __init__(self) -> None:
        self.loop_thread = threading.get_ident()
        self.threads: list[int] = []
        """The threads that have reached the gate."""
        self._reached = threading.Event()
        self._opened = threading.Event()

    def wait(self) -> None:
        """Wait until the gate is open."""
        self.threads.append(threading.get_ident())
        self._reached.set()
        if threading.get_ident() == self.loop_thread:
            raise AssertionError("this work runs on the event loop's thread and blocks it")
        if not self._opened.wait(PATIENCE):
            raise AssertionError("the gate was never opened")

    def open(self) -> None:
        """Open the gate."""
        self._opened.set()

    async def reached(self) -> None:
        """Wait until work has reached the gate, without blocking the event loop."""
        if not await asyncio.to_thread(self._reached.wait, PATIENCE):
            raise AssertionError("nothing came to the gate")
