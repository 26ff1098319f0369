"""Models that take long to load: loaded once, however many threads ask for them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from support.threads import PATIENCE

from hallujudge.judge_service.threads import SharedLoads


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
