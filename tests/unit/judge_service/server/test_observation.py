"""The server's check of itself: what is wrong, and when it needs a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from support.clocks import Clock

from hallujudge.judge_service.engine import Engine, ScoreSpec, ScoringSession
from hallujudge.judge_service.server.observation import SelfCheck
from hallujudge.metrics import Item, ItemResult, Outcome


class WrongEngine(Engine):
    """An engine whose scores are wrong, fail, or never come; without a way they are right."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how

    async def open(self, spec: ScoreSpec) -> ScoringSession:
        session = await super().open(spec)
        inner = session.score

        async def score(items: Sequence[Item]) -> list[ItemResult]:
            if not self.how:
                return await inner(items)
            if self.how == "fails":
                raise ValueError("what a user wrote")
            if self.how == "hangs":
                await asyncio.Event().wait()
            return [ItemResult(id="1", group_id="1", outcome=Outcome.SCORED)]

        session.score = score  # type: ignore[method-assign]  # the point of the stand-in
        return session


def check_of(engine: Engine, *, limit: float = 60.0, clock: Clock | None = None) -> SelfCheck:
    return SelfCheck(engine, interval=10, limit=limit, clock=clock or Clock(100.0))


async def test_a_server_that_scores_as_it_should_is_well() -> None:
    check = check_of(Engine())
    assert await check.check() == ""
    assert check.ready() == check.alive() == ""


@pytest.mark.parametrize(
    ("how", "limit", "problem"),
    [
        ("lies", 60.0, "is None, not"),
        ("fails", 60.0, "failed: ValueError"),
        ("hangs", 0.01, "longer than 0.01 s"),
    ],
)
async def test_a_wrong_or_late_score_is_a_problem(how: str, limit: float, problem: str) -> None:
    check = check_of(WrongEngine(how), limit=limit)
    assert problem in await check.check()
    assert problem in check.ready()
    assert "what a user wrote" not in check.ready()
    # It may be busy for a moment; only a lasting problem asks for a restart.
    assert check.alive() == ""


async def test_a_server_without_a_good_score_for_long_needs_a_restart() -> None:
    clock = Clock(100.0)
    check = check_of(Engine(), limit=5, clock=clock)
    clock.now += 40
    assert check.alive() == ""
    clock.now += 40
    assert "80 s" in check.alive()
    assert check.ready()
    await check.check()
    assert check.alive() == ""


def test_a_draining_server_is_alive_but_not_ready() -> None:
    check = check_of(Engine())
    check.draining = True
    assert check.alive() == ""
    assert "draining" in check.ready()


async def test_changes_are_told_once() -> None:
    engine = WrongEngine("lies")
    check = SelfCheck(engine, interval=0.001, limit=60)
    told: list[bool] = []
    changed = asyncio.Event()

    def tell(well: bool) -> None:
        told.append(well)
        changed.set()

    running = asyncio.ensure_future(check.run(tell))
    await changed.wait()
    changed.clear()
    engine.how = ""
    await changed.wait()
    running.cancel()
    assert told == [False, True]


async def test_an_event_loop_that_stands_still_needs_a_restart() -> None:
    clock = Clock(100.0)
    check = check_of(Engine(), clock=clock)
    running = asyncio.ensure_future(check.run(lambda _: None))
    await asyncio.sleep(0)
    clock.now += 10
    assert check.alive() == ""
    clock.now += 10
    assert "the event loop has not run for 20 s" in check.alive()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert check.alive() == ""
