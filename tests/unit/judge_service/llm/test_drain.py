"""Judge calls of work that is to stop."""

from __future__ import annotations

import asyncio

import pytest

from hallujudge.judge_service.stopping import (
    CallDrain,
    HeldBackError,
    is_held_back,
    leave_to_call,
    open_call,
)


class Judge:
    """Notes calls; their replies wait until a test lets them go."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.kept: list[str] = []
        self.released = asyncio.Event()

    async def call(self, name: str) -> None:
        with open_call():
            await leave_to_call()
            self.sent.append(name)
            await self.released.wait()
            self.kept.append(name)

    async def calls(self, *names: str) -> str:
        for name in names:
            await self.call(name)
        return "done"


async def turns(count: int = 10) -> None:
    """Let other tasks go on."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_without_a_drain_nothing_is_held_back() -> None:
    judge, draining = Judge(), asyncio.Event()
    judge.released.set()
    assert await CallDrain(draining).run(judge.calls("a", "b")) == "done"
    await leave_to_call()
    assert not is_held_back()
    assert judge.kept == ["a", "b"]


async def test_work_ends_when_the_replies_under_way_are_kept() -> None:
    judge, draining = Judge(), asyncio.Event()
    drain = CallDrain(draining)
    works = [asyncio.ensure_future(drain.run(judge.calls(*names))) for names in ("ab", "cd", "e")]
    await turns()
    draining.set()
    await turns()
    assert not any(work.done() for work in works)
    judge.released.set()
    ends = await asyncio.gather(*works, return_exceptions=True)
    assert [type(end) for end in ends] == [HeldBackError, HeldBackError, str]
    assert judge.sent == judge.kept == ["a", "c", "e"]


async def test_a_held_call_that_others_wait_for_goes_on_when_the_work_has_ended() -> None:
    judge, draining = Judge(), asyncio.Event()
    judge.released.set()
    shared: list[asyncio.Task[None]] = []

    async def work() -> None:
        shared.append(asyncio.ensure_future(judge.call("a")))
        await asyncio.shield(shared[0])

    draining.set()
    with pytest.raises(HeldBackError):
        await CallDrain(draining).run(work())
    await shared[0]
    assert judge.kept == ["a"]


async def test_work_that_is_cancelled_is_ended() -> None:
    judge, draining = Judge(), asyncio.Event()
    work = asyncio.ensure_future(CallDrain(draining).run(judge.calls("a")))
    await turns()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert (judge.sent, judge.kept) == (["a"], [])
