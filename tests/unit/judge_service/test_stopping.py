"""The grace period of a server, and judge calls that are held back."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest
from support.messages import expected_message
from support.threads import PATIENCE, unseen_errors

from hallujudge.judge_service.errors import OutputError
from hallujudge.judge_service.llm.verdict_cache import KeptReplies
from hallujudge.judge_service.stopping import (
    CallDrain,
    Grace,
    HeldBackError,
    begun,
    in_daemon_thread,
)
from hallujudge.judge_service.tenancy import tenancy


def never() -> asyncio.Task[None]:
    async def wait() -> None:
        await asyncio.Event().wait()

    return asyncio.ensure_future(wait())


async def test_work_that_finishes_ends_the_wait() -> None:
    done = asyncio.Event()

    async def work() -> None:
        done.set()

    await Grace(PATIENCE).wait(asyncio.ensure_future(work()), asyncio.ensure_future(work()))
    assert done.is_set()
    await Grace(PATIENCE).wait()


async def test_hurry_ends_the_wait_and_cancels_nothing() -> None:
    hurry, work = asyncio.Event(), never()
    period = Grace(PATIENCE, hurry)
    waiting = asyncio.ensure_future(period.wait(work))
    await asyncio.sleep(0)
    assert not waiting.done()
    hurry.set()
    await waiting
    assert period.left == 0
    assert not work.done()
    work.cancel()


async def test_a_part_that_does_not_end_is_told_and_left_behind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    work = never()
    await Grace(0, margin=0.01).end("the cellar", work)
    assert [record.getMessage() for record in caplog.records] == [
        expected_message("judge_service.stopping:the-cellar-did-not-end-within-after")
    ]
    await asyncio.wait({work})


async def test_a_part_that_fails_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise OSError("no space left")

    await Grace(PATIENCE).end("the cellar", fail())
    assert expected_message("judge_service.stopping:the-cellar-did-not-end-well") in caplog.text
    assert "no space left" in caplog.text


async def test_work_that_fails_after_its_callers_have_gone_is_not_logged() -> None:
    async def fail() -> None:
        raise ValueError("odd")

    with unseen_errors() as unseen:
        task = begun(fail())
        await asyncio.wait({task})
        del task
        gc.collect()
    assert unseen == []


async def test_a_thread_tells_its_end_and_its_error() -> None:
    threads = []
    await in_daemon_thread(lambda: threads.append(threading.current_thread()))
    assert threads[0].daemon

    def fail() -> None:
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        await in_daemon_thread(fail)


async def test_a_thread_that_nobody_waits_for_ends_quietly(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gate, ended = threading.Event(), threading.Event()

    def work() -> None:
        gate.wait(PATIENCE)
        ended.set()

    await Grace(0, margin=0.01).end("the cellar", in_daemon_thread(work))
    gate.set()
    assert await asyncio.to_thread(ended.wait, PATIENCE)
    assert len(caplog.records) == 1


class Judge:
    """Notes calls; their replies wait until a test lets them go."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.kept: list[str] = []
        self.released = asyncio.Event()

    async def call(self, name: str) -> None:
        with tenancy().gate.open():
            await tenancy().gate.leave()
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
    await tenancy().gate.leave()
    assert not tenancy().gate.is_closed
    assert judge.kept == ["a", "b"]


async def test_a_run_sends_no_call_once_a_reply_can_not_be_kept() -> None:
    judge, others = Judge(), Judge()
    judge.released.set()
    others.released.set()
    with KeptReplies().guard():
        await judge.calls("a")
        tenancy().gate.cannot_keep("the disk is full")
        assert tenancy().gate.is_closed
        with pytest.raises(OutputError, match="the disk is full"):
            await judge.calls("b")
    await others.calls("c")
    assert (judge.sent, others.sent) == (["a"], ["c"])


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
