"""Limits of calls: places, times, and how much of a stream is let through."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from support.messages import expected_message
from support.threads import until

from hallujudge.judge.v1 import chair_pb2
from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge_service.access import Caller
from hallujudge.judge_service.engine import Engine, ScoreSpec
from hallujudge.judge_service.errors import OverloadedError, UnavailableError
from hallujudge.judge_service.server.authentication import anonymous
from hallujudge.judge_service.server.flow_control import Admission, RunningCalls
from hallujudge.judge_service.server.judge_servicer import JudgeServicer
from hallujudge.judge_service.settings.server_settings import LimitSettings
from hallujudge.judge_service.wire.convert import spec_to_proto

ANA, BEN = (Caller(id=f"key:{name}", name=name) for name in ("ana", "ben"))


async def test_no_caller_has_all_places() -> None:
    admission = Admission(running=4, waiting=4)
    async with AsyncExitStack() as held:
        for _ in range(3):
            await held.enter_async_context(admission.admitted(ANA))
        fourth = asyncio.ensure_future(held.enter_async_context(admission.admitted(ANA)))
        await held.enter_async_context(admission.admitted(BEN))
        assert not fourth.done()
        fourth.cancel()
        await asyncio.gather(fourth, return_exceptions=True)
    # Nothing is left behind: the fourth call of the same caller waits, and then runs.
    async with AsyncExitStack() as held:
        for _ in range(3):
            await held.enter_async_context(admission.admitted(ANA))


async def test_one_call_is_in_the_singular() -> None:
    admission = Admission(running=1, waiting=0)
    async with admission.admitted(ANA):
        with pytest.raises(
            OverloadedError,
            match=expected_message("judge_service.server.flow_control:the-server-has-call-running"),
        ):
            async with admission.admitted(BEN):
                raise AssertionError("admitted")


async def test_a_stream_outlives_a_stop_of_the_process() -> None:
    # As after SIGSTOP, or on a machine that was suspended: its message came meanwhile.
    running = RunningCalls(
        LimitSettings(first_message_seconds=1.0, idle_seconds=1.0, max_call_seconds=1_000.0)
    )
    message = asyncio.Event()

    async def stream() -> str:
        with running.clock(many=True) as clock:
            clock.moved()
            await message.wait()
        return "answered"

    answered = asyncio.ensure_future(stream())
    await asyncio.sleep(0)
    time.sleep(2.5)  # the event loop stops
    for _ in range(3):  # overdue timers run
        await asyncio.sleep(0)
    message.set()
    assert await answered == "answered"


async def test_waiting_calls_of_one_caller_leave_room_for_those_of_another() -> None:
    admission = Admission(running=1, waiting=4)
    waiting: list[asyncio.Future[None]] = []

    async def call(caller: Caller) -> None:
        async with admission.admitted(caller):
            await asyncio.Event().wait()

    waiting = [asyncio.ensure_future(call(ANA)) for _ in range(4)]
    await asyncio.sleep(0)
    with pytest.raises(
        OverloadedError,
        match=expected_message(
            "judge_service.server.flow_control:ana-has-calls-running-or-waiting"
        ),
    ):
        await call(ANA)
    waiting.append(asyncio.ensure_future(call(BEN)))
    await asyncio.sleep(0)
    assert not waiting[-1].done()
    with pytest.raises(
        OverloadedError,
        match=expected_message(
            "judge_service.server.flow_control:the-server-has-calls-running-or-waiting"
        ),
    ) as full:
        await call(BEN)
    assert full.value.retry_after == 0.5
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_calls_that_do_no_work_have_places_of_their_own() -> None:
    admission = Admission(running=1, waiting=0)
    async with admission.admitted(ANA), admission.admitted(ANA, idle=True):
        with pytest.raises(OverloadedError):
            await admission.admitted(ANA, idle=True).__aenter__()


FIRST, SECOND, ELSEWHERE = (
    anonymous(peer) for peer in ("ipv4:10.0.0.7:1", "ipv4:10.0.0.7:2", "ipv4:10.0.0.8:1")
)


async def test_no_connection_has_all_places_of_an_address_without_a_key() -> None:
    admission = Admission(running=8, waiting=8)
    async with AsyncExitStack() as held:
        for _ in range(5):
            await held.enter_async_context(admission.admitted(FIRST))
        sixth = asyncio.ensure_future(held.enter_async_context(admission.admitted(FIRST)))
        await held.enter_async_context(admission.admitted(SECOND))
        assert not sixth.done()
        # Together, the connections of one address leave places to others.
        seventh = asyncio.ensure_future(held.enter_async_context(admission.admitted(SECOND)))
        await asyncio.sleep(0)
        assert not seventh.done()
        await held.enter_async_context(admission.admitted(ELSEWHERE))
        for waiting in (sixth, seventh):
            waiting.cancel()
        await asyncio.gather(sixth, seventh, return_exceptions=True)
    # Nothing is left behind.
    async with AsyncExitStack() as held:
        for _ in range(5):
            await held.enter_async_context(admission.admitted(FIRST))


@pytest.mark.parametrize("open", [False, True])
async def test_no_connection_has_all_places_of_calls_that_wait(open: bool) -> None:
    admission = Admission(running=8, waiting=8)
    async with AsyncExitStack() as held:
        for _ in range(10):
            await held.enter_async_context(admission.admitted(FIRST, idle=True, open=open))
        with pytest.raises(
            OverloadedError,
            match=expected_message(
                "judge_service.server.flow_control:a-connection-has-calls-running-or-waiting"
            ),
        ):
            await admission.admitted(FIRST, idle=True, open=open).__aenter__()
        for _ in range(2):
            await held.enter_async_context(admission.admitted(SECOND, idle=True, open=open))
        with pytest.raises(OverloadedError):
            await admission.admitted(SECOND, idle=True, open=open).__aenter__()
        await held.enter_async_context(admission.admitted(ELSEWHERE, idle=True, open=open))
        # The places of calls that need no key are not those of the others.
        await held.enter_async_context(admission.admitted(FIRST, idle=True, open=not open))


async def test_the_oldest_of_too_many_calls_without_key_and_message_ends() -> None:
    running = RunningCalls(
        LimitSettings(first_message_seconds=100, idle_seconds=100, max_call_seconds=100)
    )

    async def call(*, open: bool) -> None:
        with running.clock(many=False, open=open):
            await asyncio.Event().wait()

    known = asyncio.ensure_future(call(open=False))
    calls = [asyncio.ensure_future(call(open=True)) for _ in range(502)]
    await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.wait(calls[:2])
    assert all(isinstance(one.exception(), OverloadedError) for one in calls[:2])
    assert not any(one.done() for one in (known, *calls[2:]))
    running.stop()
    await asyncio.gather(known, *calls, return_exceptions=True)


class Reader:
    """A client that sends many batches and reads when the test wants it."""

    def __init__(self, batches: int, items: int, **settings: int) -> None:
        self.sent = 0
        self._batches, self._items = batches, items
        servicer = JudgeServicer(Engine(), LimitSettings(**settings))
        self.responses = servicer.ScoreStream(self._requests(), None)  # type: ignore[arg-type]  # is not used

    async def _requests(self) -> AsyncIterator[pb.ScoreStreamRequest]:
        yield pb.ScoreStreamRequest(spec=spec_to_proto(ScoreSpec(metric="chair")))
        task = chair_pb2.ChairTask(response="A dog, a cat and a cow." * 100)
        task.reference_objects.values.append("dog")
        for batch in range(self._batches):
            self.sent += 1
            items = [pb.Item(id=f"{batch}-{n}", chair=task) for n in range(self._items)]
            yield pb.ScoreStreamRequest(batch=pb.ItemBatch(items=items))

    async def read(self) -> pb.ScoreStreamResponse:
        async for response in self.responses:
            if response.WhichOneof("message") != "progress":
                return response
        raise AssertionError("the stream has ended")

    async def settled(self) -> int:
        """Return how many batches were taken when no more are."""
        before = -1
        while self.sent != before:
            before = self.sent
            for _ in range(200):
                await asyncio.sleep(0)
        return self.sent


@pytest.mark.parametrize(
    "settings",
    [{"max_unread_bytes": 1 << 16}, {"max_batch_items": 10}],
    ids=["bytes", "items"],
)
async def test_a_client_that_does_not_read_is_sent_no_more(settings: dict[str, int]) -> None:
    reader = Reader(batches=20, items=10, **settings)
    assert (await reader.read()).HasField("accepted")
    assert len((await reader.read()).batch.results) == 10
    # The first is read, the second is in work, and the third waits to be let through.
    assert await reader.settled() <= 3
    seen = 1
    while (response := await reader.read()).HasField("batch"):
        seen += 1
    assert seen == 20
    assert response.report.coverage.items == 200
    await reader.responses.aclose()


async def test_a_client_that_reads_has_several_batches_in_work() -> None:
    reader = Reader(batches=20, items=1)
    await reader.read()
    await reader.read()
    await until(lambda: reader.sent >= 8)
    await reader.responses.aclose()


TIMES = LimitSettings(first_message_seconds=100, idle_seconds=100, max_call_seconds=100)


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
