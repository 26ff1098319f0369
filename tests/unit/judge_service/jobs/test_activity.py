"""When jobs count as still."""

from __future__ import annotations

from hallujudge.judge_service.jobs.job_scoring import Activity
from hallujudge.judge_service.observe.recorder import JobsActivity


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_jobs_are_still_while_some_wait_and_nothing_is_heard_of_them() -> None:
    clock = Clock()
    activity = Activity(clock)
    clock.now += 1000
    assert activity.state == JobsActivity()
    activity.begin()
    activity.counted({"queued": 1, "done": 7})
    clock.now += 60
    activity.begin()
    assert activity.state.still_seconds == 60
    assert activity.state.counts == {
        "open": 0, "queued": 1, "running": 0, "done": 7, "failed": 0, "cancelled": 0,
    }  # fmt: skip
    activity.moved()
    assert activity.state.still_seconds == 0


def test_jobs_are_not_still_when_none_is_under_way() -> None:
    clock = Clock()
    activity = Activity(clock)
    activity.begin()
    clock.now += 60
    activity.counted({"done": 7, "open": 1})
    assert activity.state.still_seconds == 0
    assert not activity.count_is_due
    clock.now += 60
    assert activity.count_is_due
    activity.counted({"running": 1})
    clock.now += 5
    assert activity.state.still_seconds == 65


def test_a_database_that_is_away_makes_jobs_still() -> None:
    clock = Clock()
    activity = Activity(clock)
    activity.begin()
    clock.now += 60
    assert activity.state == JobsActivity(still_seconds=60)
