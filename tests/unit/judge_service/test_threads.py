"""Work in threads: shielded from cancellation, shared loads, and usable cores."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.threads import PATIENCE, eventually

from hallujudge.judge_service.threads import SharedLoads, look_regularly, shielded, usable_cores


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


class Key:
    """A key that counts how often it was looked for."""

    def __init__(self) -> None:
        self.looked_for = threading.Semaphore(0)

    def __hash__(self) -> int:
        self.looked_for.release()
        return 1


def test_a_load_does_not_delay_another_key() -> None:
    loads: SharedLoads[str, str] = SharedLoads(2)
    inside, go = threading.Event(), threading.Event()

    def slow_load() -> str:
        inside.set()
        assert go.wait(PATIENCE)
        return "slow"

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(loads.get, "a", slow_load)
        assert inside.wait(PATIENCE)
        assert loads.get("b", lambda: "quick") == "quick"
        assert not waiting.done()
        go.set()
        assert waiting.result(PATIENCE) == "slow"


def test_a_failed_load_fails_for_all_waiting_calls_and_is_tried_again_later() -> None:
    loads: SharedLoads[Key, str] = SharedLoads(2)
    key, inside, go, made = Key(), threading.Event(), threading.Event(), []

    def load() -> str:
        made.append("load")
        inside.set()
        assert go.wait(PATIENCE)
        if len(made) == 1:
            raise OSError("no such model")
        return "model"

    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(loads.get, key, load)]
        assert inside.wait(PATIENCE)
        while key.looked_for.acquire(blocking=False):
            pass
        waiting.append(pool.submit(loads.get, key, load))
        # The second caller has looked for the key, and found the load that runs.
        assert key.looked_for.acquire(timeout=PATIENCE)
        go.set()
        for each in waiting:
            with pytest.raises(OSError, match="no such model"):
                each.result(PATIENCE)
    assert made == ["load"]
    assert loads.get(key, load) == "model"
    assert made == ["load", "load"]


def test_the_one_asked_for_the_longest_ago_goes_first() -> None:
    loads: SharedLoads[str, int] = SharedLoads(2)
    made: list[str] = []

    def load(key: str) -> int:
        made.append(key)
        return len(made)

    for key in "abacab":
        loads.get(key, partial(load, key))
    assert made == ["a", "b", "c", "b"]


@pytest.mark.parametrize(
    ("quota", "expected"),
    [("200000 100000", 2), ("150000 100000", 2), ("50000 100000", 1), ("max 100000", 8), ("", 8)],
)
def test_a_quota_limits_the_cores(
    quota: str, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    (tmp_path / "cpu.max").write_text(quota)
    assert usable_cores(tmp_path / "cpu.max") == expected


def test_without_a_quota_the_affinity_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    assert usable_cores(tmp_path / "missing") == 3


def test_an_object_is_looked_at_for_as_long_as_it_is_used() -> None:
    looks: list[str] = []

    class Watched:
        def look(self) -> None:
            looks.append(threading.current_thread().name)

    watched = Watched()
    look_regularly(watched.look, "looking")
    assert eventually(lambda: len(looks) >= 2)
    assert set(looks) == {"looking"}
    del watched
    assert eventually(lambda: "looking" not in {one.name for one in threading.enumerate()})
