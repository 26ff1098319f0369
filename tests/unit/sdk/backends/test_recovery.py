"""Recovery of a run: unanswered batches, losses, progress, and reconnection."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from random import Random

import pytest
from support.clocks import Clock
from support.messages import expected_message

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.metrics import Item
from hallujudge.sdk.backends import BatchResult
from hallujudge.sdk.backends.recovery import Losses, Outbox, ProgressWatch, Reconnecting, WaitLog
from hallujudge.sdk.errors import (
    CancelledError,
    DeadlineError,
    HallujudgeError,
    InvalidInputError,
    OverloadedError,
    UnavailableError,
)


def batch(*ids: str) -> list[Item]:
    return [Item(id=name) for name in ids]


async def source(*batches: Sequence[Item]) -> AsyncIterator[Sequence[Item]]:
    for each in batches:
        yield each


def ids(items: Sequence[Item]) -> str:
    return "".join(item.id for item in items)


def paired(items: Sequence[Item]) -> BatchResult:
    return BatchResult(items=items, results=())


def answered(outbox: Outbox) -> str:
    """Answer the oldest batch; return the items whose results are complete."""
    return "".join(ids(result.items) for result in outbox.answered(paired))


async def test_batches_without_an_answer_are_sent_again_in_order() -> None:
    async with Outbox(source(batch("a"), batch("b"), batch("c")), limit=9) as outbox:
        assert not outbox.outstanding
        first = outbox.connect()
        assert [ids(await anext(first)), ids(await anext(first))] == ["a", "b"]
        assert outbox.outstanding
        assert answered(outbox) == "a"
        second = outbox.connect()
        assert not outbox.outstanding
        assert [ids(sent) async for sent in second] == ["b", "c"]
        # The first connection is over: it sends nothing that the second one sends.
        assert [ids(sent) async for sent in first] == []
        assert [answered(outbox), answered(outbox)] == ["b", "c"]
        assert outbox.outstanding  # the end of the run


async def test_no_more_is_read_than_the_limit_allows() -> None:
    read: list[str] = []

    async def slow() -> AsyncIterator[Sequence[Item]]:
        for name in "abcde":
            read.append(name)
            yield batch(name, name.upper())

    async with Outbox(slow(), limit=4) as outbox:
        sent = outbox.connect()
        assert [ids(await anext(sent)) for _ in range(2)] == ["aA", "bB"]
        waiting = asyncio.ensure_future(anext(sent))
        await asyncio.sleep(0)
        assert (waiting.done(), read) == (False, ["a", "b", "c"])
        answered(outbox)
        assert ids(await waiting) == "cC"


async def test_a_batch_larger_than_the_limit_is_sent_alone() -> None:
    async with Outbox(source(batch("a", "b", "c"), batch("d")), limit=2) as outbox:
        sent = outbox.connect()
        assert ids(await anext(sent)) == "abc"
        answered(outbox)
        assert ids(await anext(sent)) == "d"


async def test_an_error_of_the_source_ends_what_is_sent() -> None:
    async def broken() -> AsyncIterator[Sequence[Item]]:
        yield batch("a")
        raise ValueError("line 2")

    async with Outbox(broken(), limit=9) as outbox:
        sent = outbox.connect()
        assert ids(await anext(sent)) == "a"
        with pytest.raises(ValueError, match="line 2"):
            await anext(sent)
        assert isinstance(outbox.error, ValueError)


async def test_a_cancelled_connection_does_not_stop_the_reading() -> None:
    """gRPC cancels what reads for a call that failed."""
    release = asyncio.Event()

    async def late() -> AsyncIterator[Sequence[Item]]:
        yield batch("a")
        await release.wait()
        yield batch("b")

    async with Outbox(late(), limit=9) as outbox:
        first = outbox.connect()
        await anext(first)
        waiting = asyncio.ensure_future(anext(first))
        await asyncio.sleep(0)
        waiting.cancel()
        second = outbox.connect()
        release.set()
        assert [ids(sent) async for sent in second] == ["a", "b"]


async def test_leaving_closes_the_source() -> None:
    closed = asyncio.Event()

    async def endless() -> AsyncIterator[Sequence[Item]]:
        try:
            await asyncio.Event().wait()
            yield []
        finally:
            closed.set()

    async with Outbox(endless(), limit=9) as outbox:
        outbox.connect()
        await asyncio.sleep(0)
    assert closed.is_set()


class Run:
    """A run at a server that dies when a test says so."""

    def __init__(self, count: int, dies: Callable[[Sequence[str]], bool]) -> None:
        self.names = [f"{number}." for number in range(count)]
        self.deaths = 0
        self.results: list[str] = []
        self.sizes: list[int] = []
        self.blamed: list[str] = []
        self._dies = dies

    async def run(self, size: int, limit: int) -> None:
        names = self.names
        batches = [batch(*names[at : at + size]) for at in range(0, len(names), size)]
        async with Outbox(source(*batches), limit) as outbox:
            while len(self.results) < len(names):
                await self._connection(outbox)

    async def _connection(self, outbox: Outbox) -> None:
        """Send as much as may be, until the server dies or has answered all of it."""
        sending, under_way, batches = outbox.connect(), list[str](), 0
        while (items := await self._next(sending)) is not None:
            under_way += [item.id for item in items]
            batches += 1
            if outbox.fatal:
                self.blamed += under_way
                break
        else:
            self.sizes.append(len(under_way))
            if self._dies(under_way):
                self.deaths += 1
                outbox.died()
                return
        for _ in range(batches):
            for result in outbox.answered(paired):
                self.results += [item.id for item in result.items]

    async def _next(self, sending: AsyncIterator[Sequence[Item]]) -> Sequence[Item] | None:
        """Return the next batch; None if no more may be sent now."""
        taken = asyncio.ensure_future(anext(sending, None))
        for _ in range(5):
            await asyncio.sleep(0)
        if taken.done():
            return taken.result()
        taken.cancel()
        await asyncio.gather(taken, return_exceptions=True)
        return None


async def test_what_was_under_way_at_a_death_is_sent_again_in_halves() -> None:
    deaths = [False, True]
    run = Run(40, lambda _names: bool(deaths) and deaths.pop(0))
    await run.run(size=4, limit=16)
    assert run.sizes == [16, 16, 8, 8, 8]
    assert run.results == run.names
    assert run.blamed == []


async def test_an_item_that_ends_the_server_is_found_and_results_stay_in_order() -> None:
    run = Run(60, lambda names: "37." in names)
    await run.run(size=4, limit=16)
    assert run.blamed == ["37."]
    assert run.results == run.names
    # With 16, 8, 4 and 2; then twice alone, after six others that survive.
    assert run.deaths == 6


async def test_the_only_item_of_a_run_is_fatal_after_six_deaths() -> None:
    run = Run(1, lambda _names: True)
    await run.run(size=4, limit=16)
    assert (run.blamed, run.deaths) == (["0."], 6)


@pytest.mark.parametrize("seed", range(20))
async def test_random_kills_blame_no_item(seed: int) -> None:
    random = Random(seed)
    run = Run(400, lambda _names: random.random() < 0.1)
    await run.run(size=4, limit=16)
    assert run.blamed == []
    assert run.results == run.names


def test_a_lost_connection_is_a_death_where_the_server_was_started_again() -> None:
    losses = Losses("one")
    assert not losses.are_deadly("one"), "the server only refused a call"
    losses.add()
    assert not losses.are_deadly("one")
    losses.answered()
    losses.add()
    assert losses.are_deadly("two")
    losses.answered()
    losses.add()
    assert not losses.are_deadly("two")


def test_a_server_that_is_lost_twice_without_an_answer_may_suffer_from_an_item() -> None:
    losses = Losses("one")
    losses.add()
    assert not losses.are_deadly("one")
    losses.add()
    assert losses.are_deadly("one")


def test_a_server_without_a_start_id_is_taken_for_dead() -> None:
    losses = Losses("")
    losses.add()
    assert losses.are_deadly("")


ACCEPTED = pb.ScoreStreamResponse(accepted=pb.StreamAccepted())
BATCH = pb.ScoreStreamResponse(batch=pb.ResultBatch())


def progress(answers: int = 0, waiting: str = "") -> pb.ScoreStreamResponse:
    return pb.ScoreStreamResponse(progress=pb.StreamProgress(answers=answers, waiting=waiting))


def watched(*messages: pb.ScoreStreamResponse | None, outstanding: bool = True) -> None:
    """Give each message 6 seconds after the one before, with 10 seconds allowed."""
    clock = Clock()
    watch = ProgressWatch("host:1", 10, clock, WaitLog(clock))
    for message in messages:
        clock.now += 6
        watch.check(message, outstanding=outstanding)


@pytest.mark.parametrize(
    "messages",
    [
        (None, None),
        (ACCEPTED, None, None),
        (ACCEPTED, progress(3), progress(3), progress(3)),
        (ACCEPTED, BATCH, progress(), progress(), progress()),
    ],
)
def test_alive_is_not_enough(messages: tuple[pb.ScoreStreamResponse | None, ...]) -> None:
    with pytest.raises(
        DeadlineError, match=expected_message("sdk.backends.recovery:host-made-no-progress-for")
    ) as caught:
        watched(*messages)
    assert "progress_timeout" in str(caught.value)


@pytest.mark.parametrize(
    "messages",
    [
        (ACCEPTED, BATCH, BATCH, BATCH, BATCH),
        (ACCEPTED, progress(1), progress(2), progress(3), progress(4)),
        (ACCEPTED, *[progress(7, "judge m: no answer for 9 s")] * 5),
    ],
)
def test_results_answers_and_reasons_are_progress(
    messages: tuple[pb.ScoreStreamResponse | None, ...],
) -> None:
    watched(*messages)


def test_a_server_without_work_owes_nothing() -> None:
    watched(ACCEPTED, *[progress()] * 9, outstanding=False)


def test_the_callers_own_time_does_not_count() -> None:
    clock = Clock()
    watch = ProgressWatch("host:1", 10, clock)
    watch.check(BATCH, outstanding=True)
    clock.now += 1000
    watch.moved()
    watch.check(None, outstanding=True)


def test_what_is_waited_for_is_logged_every_half_minute(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        watched(ACCEPTED, *[progress(0, "judge m: HTTP 503")] * 10)
    assert [record.getMessage() for record in caplog.records] == ["waiting: judge m: HTTP 503"] * 2


LOST = UnavailableError("no connection")
FULL = OverloadedError("busy", retry_after=9.0)


def test_pauses_grow_until_the_server_was_away_too_long() -> None:
    clock, pauses = Clock(), []
    reconnecting = Reconnecting("host:1", 60, clock, lambda: 1.0)
    while clock.now < 60:
        pauses.append(reconnecting.lost(LOST))
        clock.now += pauses[-1]
    with pytest.raises(
        UnavailableError,
        match=expected_message("sdk.backends.recovery:did-not-come-back-for-no-connection"),
    ):
        reconnecting.lost(LOST)
    assert pauses[:7] == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert 60 <= sum(pauses) < 65


def test_clients_do_not_come_back_all_at_once() -> None:
    assert Reconnecting("h", 60, Clock(), lambda: 0.0).lost(LOST) == 0.1


def test_an_answer_starts_the_time_again() -> None:
    clock = Clock()
    reconnecting = Reconnecting("host:1", 60, clock, lambda: 1.0)
    for _ in range(3):
        assert reconnecting.lost(LOST) == 0.2
        clock.now += 59
        assert reconnecting.lost(LOST) == 0.4
        reconnecting.back()


def test_a_full_server_is_given_time() -> None:
    clock = Clock()
    reconnecting = Reconnecting("host:1", 60, clock, lambda: 1.0)
    assert reconnecting.lost(LOST) == 0.2
    assert reconnecting.lost(FULL) == 9.0
    clock.now = 60
    with pytest.raises(OverloadedError) as raised:
        reconnecting.lost(FULL)
    assert raised.value is FULL


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("KEY_RATE_LIMIT", "key ana, 5 calls a minute"),
        ("KEY_CONCURRENCY_LIMIT", "key ana, 5 calls at once"),
    ],
)
def test_the_quota_of_a_key_is_waited_for_as_long_as_it_takes(
    reason: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    refused = OverloadedError(
        "no more", reason=reason, metadata={"limit": "5", "key": "ana"}, retry_after=12.0
    )
    reconnecting = Reconnecting("host:1", 60, clock, log=WaitLog(clock))
    for _ in range(20):
        assert reconnecting.lost(refused) == 12.0
        clock.now += 12
    assert reconnecting.waiting == said
    # Every 30 seconds of the 240.
    assert caplog.messages == [f"waiting: {said}"] * 7


@pytest.mark.parametrize("seconds", [0, 60])
def test_a_limit_that_time_does_not_lift_is_an_error(seconds: float) -> None:
    """With 0 seconds, no refusal is waited for."""
    refused = FULL if not seconds else OverloadedError("too many jobs", reason="JOB_LIMIT")
    with pytest.raises(OverloadedError) as raised:
        Reconnecting("host:1", seconds, Clock()).lost(refused)
    assert raised.value is refused


def test_a_stream_that_the_server_ended_for_silence_is_no_outage() -> None:
    clock = Clock()
    reconnecting = Reconnecting("host:1", 60, clock)
    for _ in range(3):
        assert reconnecting.lost(DeadlineError("nothing was sent", reason="STREAM_IDLE")) < 1
        clock.now += 3600


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (UnavailableError("drains", reason="SERVER_DRAINING"), True),
        (CancelledError("its time was over"), True),
        (UnavailableError("the judge is away", reason="JUDGE_NO_PROGRESS"), False),
        (UnavailableError("the judge is away", reason="JUDGE_UNREACHABLE"), False),
        (InvalidInputError("wrong"), False),
    ],
)
def test_only_a_lost_connection_is_tried_again(error: HallujudgeError, again: bool) -> None:
    reconnecting = Reconnecting("host:1", 60, Clock())
    if again:
        assert reconnecting.lost(error) > 0
        return
    with pytest.raises(type(error)) as raised:
        reconnecting.lost(error)
    assert raised.value is error


def test_zero_seconds_end_a_run_with_its_connection() -> None:
    with pytest.raises(UnavailableError) as raised:
        Reconnecting("host:1", 0).lost(LOST)
    assert raised.value is LOST


def test_a_server_whose_judges_answer_between_two_losses_was_back() -> None:
    clock = Clock()
    reconnecting = Reconnecting("host:1", 60, clock, lambda: 1.0)
    for answers in (0, 40, 80):
        reconnecting.lost(LOST)
        clock.now += 50
        reconnecting.progress(answers)
        reconnecting.progress(answers + 1)
    assert reconnecting.lost(LOST) == 0.2


def test_answers_of_before_a_loss_do_not_show_that_a_server_is_back() -> None:
    clock = Clock()
    reconnecting = Reconnecting("host:1", 60, clock, lambda: 1.0)
    for answers in (40, 80):
        reconnecting.progress(answers)
        reconnecting.lost(LOST)
        reconnecting.progress(answers)
        reconnecting.progress(answers)
        clock.now += 60
        if answers == 40:
            reconnecting.back()
    with pytest.raises(
        UnavailableError, match=expected_message("sdk.backends.recovery:did-not-come-back")
    ):
        reconnecting.lost(LOST)
