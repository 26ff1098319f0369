"""Work in threads that a cancelled caller does not call off."""

from __future__ import annotations

import asyncio
import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hallujudge.judge_service.threads import shielded


class Work:
    """Work that waits for the test, and fails."""

    def __init__(self) -> None:
        self.begun, self.released = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.begun.set()
        self.released.wait()
        raise ValueError("no such job")


async def test_the_error_of_work_that_no_caller_waits_for_is_not_logged() -> None:
    logged: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: logged.append(context))
    work = Work()
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(work)
        caller = asyncio.ensure_future(shielded(running))
        await asyncio.to_thread(work.begun.wait)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        assert not running.cancelled()
        work.released.set()
    with pytest.raises(ValueError, match="no such job"):
        await asyncio.wrap_future(running)
    del caller, running
    gc.collect()
    assert logged == []


async def test_a_caller_that_waits_gets_the_error() -> None:
    work = Work()
    work.released.set()
    with ThreadPoolExecutor(1) as threads, pytest.raises(ValueError, match="no such job"):
        await shielded(threads.submit(work))
