"""When a server that was lost is tried again."""

from __future__ import annotations

import pytest

from hallujudge.sdk.backends.recovery import Reconnecting
from hallujudge.sdk.errors import (
    CancelledError,
    DeadlineError,
    HallujudgeError,
    InvalidInputError,
    OverloadedError,
    UnavailableError,
)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


LOST = UnavailableError("no connection")
FULL = OverloadedError("busy", retry_after=9.0)


def test_pauses_grow_until_the_server_was_away_too_long() -> None:
    clock, pauses = Clock(), []
    reconnecting = Reconnecting("host:1", 60, clock, lambda: 1.0)
    while clock.now < 60:
        pauses.append(reconnecting.lost(LOST))
        clock.now += pauses[-1]
    with pytest.raises(UnavailableError, match="did not come back for 60 s: no connection"):
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


def test_a_server_that_is_full_when_it_is_back_is_given_time() -> None:
    reconnecting = Reconnecting("host:1", 60, Clock(), lambda: 1.0)
    with pytest.raises(OverloadedError):
        reconnecting.lost(FULL)
    reconnecting.lost(LOST)
    assert reconnecting.lost(FULL) == 9.0


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


@pytest.mark.parametrize("seconds", [-1, float("nan")])
def test_a_time_below_zero_is_refused(seconds: float) -> None:
    with pytest.raises(InvalidInputError, match="reconnect_timeout is"):
        Reconnecting("host:1", seconds)


def test_a_server_whose_judges_answer_between_two_losses_was_back() -> None:
    clock = Clock()
    reconnecting = Reconnecting("host:1", 60, clock, lambda: 1.0)
    for answers in (0, 40, 80):
        reconnecting.lost(LOST)
        clock.now += 50
        reconnecting.told(answers)
        reconnecting.told(answers + 1)
    assert reconnecting.lost(LOST) == 0.2


def test_answers_of_before_a_loss_do_not_show_that_a_server_is_back() -> None:
    clock = Clock()
    reconnecting = Reconnecting("host:1", 60, clock, lambda: 1.0)
    for answers in (40, 80):
        reconnecting.told(answers)
        reconnecting.lost(LOST)
        reconnecting.told(answers)
        reconnecting.told(answers)
        clock.now += 60
        if answers == 40:
            reconnecting.back()
    with pytest.raises(UnavailableError, match="did not come back"):
        reconnecting.lost(LOST)
