"""Models that take long to load: loaded once, and beside the event loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from hallujudge.judge_service.engine import Engine
from hallujudge.judge_service.engine.engine import ScoringSession
from hallujudge.judge_service.engine.spec import ScoreSpec
from hallujudge.judge_service.errors import NotFoundError
from hallujudge.judge_service.llm.loads import SharedLoads
from hallujudge.judge_service.matchers import ClaimQuery, MatcherSettings
from hallujudge.metrics.framework.claims import ClaimVerdict

SPEC = ScoreSpec(metric="tri-he", options={"extractor": "given"})
TICK = 0.01


class SlowModels:
    """Opens matchers slowly, and as often as it is told not at all."""

    def __init__(self, seconds: float, failures: int = 0) -> None:
        self.seconds = seconds
        self.failures = failures
        self.opened = 0
        self.threads: set[int] = set()

    def open(self, _settings: MatcherSettings) -> NoClaims:
        self.opened += 1
        self.threads.add(threading.get_ident())
        time.sleep(self.seconds)  # not asyncio's: a model is loaded without giving way
        if self.opened <= self.failures:
            raise NotFoundError("the model is not on this machine")
        return NoClaims()


class NoClaims:
    """A matcher that nobody asks."""

    name = label = "none"
    settings: Mapping[str, str] = {}

    async def judge(self, claims: Sequence[ClaimQuery]) -> list[ClaimVerdict]:
        raise AssertionError(f"asked about {len(claims)} claims")


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Callable[..., SlowModels]:
    def make(seconds: float, failures: int = 0) -> SlowModels:
        models = SlowModels(seconds, failures)
        monkeypatch.setattr("hallujudge.judge_service.matchers.open_matcher", models.open)
        return models

    return make


async def test_others_go_on_while_a_matcher_loads(slow: Callable[..., SlowModels]) -> None:
    models = slow(0.5)
    longest = 0.0

    async def tick() -> None:
        nonlocal longest
        while True:
            started = time.perf_counter()
            await asyncio.sleep(TICK)
            longest = max(longest, time.perf_counter() - started)

    engine = Engine()
    await Engine().open(ScoreSpec(metric="pope"))  # what is imported once is no part of this
    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0)
    await engine.open(SPEC)
    ticking.cancel()
    assert models.opened == 1
    assert threading.get_ident() not in models.threads
    # Held up by the load, one of the ticks would have taken all of its half second.
    assert longest < 0.4


async def test_calls_that_come_at_once_load_once(slow: Callable[..., SlowModels]) -> None:
    models = slow(0.2)
    engine = Engine()
    sessions = await asyncio.gather(engine.open(SPEC), engine.open(SPEC), engine.open(SPEC))
    assert len({id(session) for session in sessions}) == 3
    assert models.opened == 1
    await engine.open(SPEC)
    assert models.opened == 1


async def test_a_failed_load_is_told_to_all_and_tried_again_later(
    slow: Callable[..., SlowModels],
) -> None:
    models = slow(0.2, failures=1)
    engine = Engine()
    both = await asyncio.gather(engine.open(SPEC), engine.open(SPEC), return_exceptions=True)
    assert [type(one) for one in both] == [NotFoundError, NotFoundError]
    assert models.opened == 1
    assert isinstance(await engine.open(SPEC), ScoringSession)
    assert models.opened == 2


def test_a_load_holds_up_no_other_key() -> None:
    loads: SharedLoads[str, str] = SharedLoads(2)
    inside, go = threading.Event(), threading.Event()

    def slow_load() -> str:
        inside.set()
        assert go.wait(10)
        return "slow"

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(loads.get, "a", slow_load)
        assert inside.wait(10)
        assert loads.get("b", lambda: "quick") == "quick"
        assert not waiting.done()
        go.set()
        assert waiting.result(10) == "slow"


def test_the_one_asked_for_the_longest_ago_goes_first() -> None:
    loads: SharedLoads[str, int] = SharedLoads(2)
    made: list[str] = []

    def load(key: str) -> int:
        made.append(key)
        return len(made)

    for key in "abacab":
        loads.get(key, partial(load, key))
    assert made == ["a", "b", "c", "b"]
