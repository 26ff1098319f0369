"""When a call ends early."""

from __future__ import annotations

import asyncio

import pytest

from hallujudge.judge_service.errors import UnavailableError
from hallujudge.judge_service.server.flow_control import CallTimes, RunningCalls

TIMES = CallTimes(first_message=100, idle=100, total=100)


async def begun(running: RunningCalls) -> asyncio.Task[None]:
    """Return a call that waits inside its block."""
    inside = asyncio.Event()

    async def call() -> None:
        with running.clock(many=False):
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(call())
    await inside.wait()
    return task


async def test_a_call_is_told_why_it_ends() -> None:
    running = RunningCalls(TIMES)
    task = await begun(running)
    running.stop()
    with pytest.raises(UnavailableError, match="the server stops"):
        await task
    # Nothing of the cancellation is left in the task.
    assert task.cancelling() == 0


@pytest.mark.parametrize("stopped_first", [False, True])
async def test_a_call_that_its_client_cancels_too_stays_cancelled(stopped_first: bool) -> None:
    running = RunningCalls(TIMES)
    task = await begun(running)
    if stopped_first:
        running.stop()
    task.cancel()
    running.stop()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def test_a_call_that_ends_as_its_server_stops_is_not_cancelled_later() -> None:
    running = RunningCalls(TIMES)
    with running.clock(many=False):
        running.stop()
    # What the stop left behind would run now.
    await asyncio.sleep(0)
