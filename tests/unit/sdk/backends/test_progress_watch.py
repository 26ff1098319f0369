"""A server that is alive, but makes no progress."""

from __future__ import annotations

import logging

import pytest

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.sdk.backends.recovery import ProgressWatch
from hallujudge.sdk.errors import DeadlineError, InvalidInputError

ACCEPTED = pb.ScoreStreamResponse(accepted=pb.StreamAccepted())
BATCH = pb.ScoreStreamResponse(batch=pb.ResultBatch())


def told(answers: int = 0, waiting: str = "") -> pb.ScoreStreamResponse:
    return pb.ScoreStreamResponse(progress=pb.StreamProgress(answers=answers, waiting=waiting))


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def watched(*messages: pb.ScoreStreamResponse | None, outstanding: bool = True) -> None:
    """Give each message 6 seconds after the one before, with 10 seconds allowed."""
    clock = Clock()
    watch = ProgressWatch("host:1", 10, clock)
    for message in messages:
        clock.now += 6
        watch.check(message, outstanding=outstanding)


@pytest.mark.parametrize(
    "messages",
    [
        (None, None),
        (ACCEPTED, None, None),
        (ACCEPTED, told(3), told(3), told(3)),
        (ACCEPTED, BATCH, told(), told(), told()),
    ],
)
def test_alive_is_not_enough(messages: tuple[pb.ScoreStreamResponse | None, ...]) -> None:
    with pytest.raises(DeadlineError, match="'host:1' made no progress for 10 s") as caught:
        watched(*messages)
    assert "progress_timeout" in str(caught.value)


@pytest.mark.parametrize(
    "messages",
    [
        (ACCEPTED, BATCH, BATCH, BATCH, BATCH),
        (ACCEPTED, told(1), told(2), told(3), told(4)),
        (ACCEPTED, *[told(7, "judge m: no answer for 9 s")] * 5),
    ],
)
def test_results_answers_and_reasons_are_progress(
    messages: tuple[pb.ScoreStreamResponse | None, ...],
) -> None:
    watched(*messages)


def test_a_server_without_work_owes_nothing() -> None:
    watched(ACCEPTED, *[told()] * 9, outstanding=False)


def test_the_callers_own_time_does_not_count() -> None:
    clock = Clock()
    watch = ProgressWatch("host:1", 10, clock)
    watch.check(BATCH, outstanding=True)
    clock.now += 1000
    watch.moved()
    watch.check(None, outstanding=True)


def test_what_is_waited_for_is_logged_every_half_minute(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        watched(ACCEPTED, *[told(0, "judge m: HTTP 503")] * 10)
    assert [record.getMessage() for record in caplog.records] == [
        "server at host:1: judge m: HTTP 503"
    ] * 2


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_time_that_is_not_above_zero_is_refused(seconds: float) -> None:
    with pytest.raises(InvalidInputError, match="progress_timeout is"):
        ProgressWatch("host:1", seconds)
