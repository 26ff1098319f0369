"""Recovery of a run: unanswered batches, progress, and reconnection."""

from __future__ import annotations

import logging

import pytest
from support.clocks import Clock
from support.messages import expected_message

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.sdk.backends.recovery import Losses, ProgressWatch, Reconnecting, WaitLog
from hallujudge.sdk.errors import (
    CancelledError,
    DeadlineError,
    HallujudgeError,
    InvalidInputError,
    OverloadedError,
    UnavailableError,
)


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
