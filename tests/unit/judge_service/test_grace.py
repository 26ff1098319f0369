"""The time that running work has to finish when a server stops."""

from __future__ import annotations

import asyncio
import threading

import pytest
from support.threads import PATIENCE

from hallujudge.judge_service.stopping import Grace, in_daemon_thread


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
        "the cellar did not end within 0.01 s after the drain; the server ends without it"
    ]
    await asyncio.wait({work})


async def test_a_part_that_fails_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise OSError("no space left")

    await Grace(PATIENCE).end("the cellar", fail())
    assert "the cellar did not end well" in caplog.text
    assert "no space left" in caplog.text


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
