"""Which job runs when: jobs that wait for a judge or a disk."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence, Set
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from support.clocks import Clock
from support.threads import until

from hallujudge.judge_service.access import LOCAL, acting_as
from hallujudge.judge_service.engine import Engine, ScoringSession
from hallujudge.judge_service.engine.registry import Pipeline, open_pipeline
from hallujudge.judge_service.engine.resources import Resources
from hallujudge.judge_service.engine.spec import ScoreSpec
from hallujudge.judge_service.errors import InvalidInputError, UnavailableError
from hallujudge.judge_service.jobs import Death, Job, JobState, Problem, kept_caller
from hallujudge.judge_service.jobs.database import FileLock
from hallujudge.judge_service.jobs.job_progress import Activity, Changes
from hallujudge.judge_service.jobs.job_runner import JobRunner
from hallujudge.judge_service.jobs.job_scoring import DatabaseThreads, JobScoring, Lanes
from hallujudge.judge_service.llm.ask_once import SingleFlight, run_bounded
from hallujudge.judge_service.llm.client import Turn
from hallujudge.judge_service.settings.server_settings import JobSettings
from hallujudge.judge_service.stopping import CallDrain, Grace
from hallujudge.judge_service.wire.convert import item_to_proto, report_bytes, spec_to_proto
from hallujudge.metrics import ChairItem, Item, ItemResult

_DAY = 86_400.0
SPEC = ScoreSpec(metric="chair")
ITEM = ChairItem(id="1", response="A dog and a cat.", reference_objects=("dog",))


class AwayDatabase:
    """The progress of one job: the database is away when the job begins for the first time."""

    def __init__(self) -> None:
        self.begun = 0
        self.problems: list[Problem] = []

    def waiting(self) -> list[Job]:
        return [] if self.begun > 1 else [self.job(1)]

    def job(self, number: int) -> Job:
        with acting_as(LOCAL):
            caller = kept_caller()
        return Job(
            number=number, id="j", owner="ann", caller=caller, request_id="r",
            state=JobState.QUEUED, spec=b"", items=1, bytes=1, scored=0, unscored=0,
            problem=Problem(), created_at=0.0, finished_at=None,
        )  # fmt: skip

    def recover(self, running: tuple[int, ...]) -> list[Death]:
        return []

    def land(self, number: int) -> None:
        return None

    def fly(self, number: int, added: Set[int], left: Set[int]) -> None:
        return None

    def counts(self) -> dict[str, int]:
        return {}

    def delete_old(self, now: float, days: float) -> int:
        return 0

    def begin(self, number: int) -> bool:
        self.begun += 1
        if self.begun == 1:
            raise UnavailableError("locked", reason="JOBS_UNAVAILABLE")
        return False

    def wait(self, number: int, problem: Problem) -> bool:
        self.problems.append(problem)
        return True


class OwnLock(FileLock):
    """The lock of the only server."""

    def __init__(self) -> None:
        super().__init__(Path("unused"))

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        return None


class ScoredSinceDatabase(AwayDatabase):
    """The progress of a job whose first item is scored in this run, before its judge rejects it."""

    def __init__(self) -> None:
        super().__init__()
        self.failed: list[Problem] = []

    def job(self, number: int) -> Job:
        return replace(super().job(number), scored=self.begun)

    def begin(self, number: int) -> bool:
        self.begun += 1
        raise InvalidInputError("rejected", reason="JUDGE_AUTH_FAILED")

    def fail(self, number: int, problem: Problem, at: float) -> None:
        self.failed.append(problem)


async def test_a_job_that_was_answered_in_this_run_waits_for_its_judges_key() -> None:
    database = ScoredSinceDatabase()
    draining, changes = asyncio.Event(), Changes()
    scoring = scoring_of(database, changes, draining, Clock())
    running = asyncio.create_task(JobRunner(scoring, OwnLock(), JobSettings(), Clock()).run())
    await until(lambda: bool(database.problems or database.failed))
    assert [one.reason for one in database.problems] == ["JUDGE_AUTH_FAILED"]
    assert not database.failed
    draining.set()
    changes.notify()
    await running


def scoring_of(
    database: AwayDatabase,
    changes: Changes,
    draining: asyncio.Event,
    wall: Clock,
    engine: Engine | None = None,
) -> JobScoring:
    return JobScoring(
        engine=engine or Engine(),
        progress=cast("Any", database),
        suspicions=cast("Any", database),
        threads=DatabaseThreads(),
        changes=changes,
        activity=Activity(),
        draining=draining,
        calls=CallDrain(draining),
        now=wall,
        lanes=Lanes(8),
    )


async def test_a_pause_ends_in_time_when_the_systems_clock_is_set_back() -> None:
    database, wall, steady = AwayDatabase(), Clock(1000 * _DAY), Clock()
    changes, draining = Changes(), asyncio.Event()
    scoring = scoring_of(database, changes, draining, wall)
    running = asyncio.create_task(JobRunner(scoring, OwnLock(), JobSettings(), steady).run())
    await until(lambda: [one.reason for one in database.problems] == ["JOBS_UNAVAILABLE"])
    wall.now -= 2 * _DAY
    steady.now += 10
    changes.notify()
    await until(lambda: database.begun == 2)
    draining.set()
    changes.notify()
    await running


class LostDatabase(AwayDatabase):
    """A database that is lost."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error
        self.looks = 0

    def waiting(self) -> list[Job]:
        self.looks += 1
        raise self.error

    def has_looked(self, times: int) -> bool:
        return self.looks > times


@pytest.mark.parametrize("error", [UnavailableError("lost"), ZeroDivisionError("lost")])
async def test_a_lost_database_is_logged_once_a_minute(
    caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    database, clock = LostDatabase(error), Clock()
    draining, changes = asyncio.Event(), Changes()
    scoring = scoring_of(database, changes, draining, Clock())
    running = asyncio.create_task(JobRunner(scoring, OwnLock(), JobSettings(), clock).run())
    for minute in range(3):
        clock.now = 60.0 * minute
        for looks in range(10 * minute, 10 * minute + 10):
            await until(partial(database.has_looked, looks))
            changes.notify()
    draining.set()
    changes.notify()
    await running
    lines = [line.message for line in caplog.records if "no job is started" in line.message]
    assert len(lines) == 3
    # The look at each of the minute's ends may count before it or after it.
    assert re.search(r"\((?:9|10|11) times since", lines[-1])


class JudgedDatabase(AwayDatabase):
    """The progress of a job with one item."""

    def __init__(self, header: bytes) -> None:
        super().__init__()
        self.content = header

    def waiting(self) -> list[Job]:
        return [self.job(1)]

    def job(self, number: int) -> Job:
        return replace(super().job(number), spec=spec_to_proto(SPEC).SerializeToString())

    def begin(self, number: int) -> bool:
        return True

    def next_trial(self, number: int) -> None:
        return None

    def header(self, number: int) -> bytes:
        return self.content

    def chunk(self, number: int, after: int, **_: object) -> list[tuple[int, bytes]]:
        return [] if after >= 0 else [(0, item_to_proto(ITEM).SerializeToString())]


class LostLock(OwnLock):
    """A lock that another server may take."""

    def __init__(self) -> None:
        super().__init__()
        self.lost = False

    def acquire(self) -> bool:
        return not self.lost


class AskingSession(ScoringSession):
    """Sends a call for a batch of items.

    Args:
        pipeline: The pipeline of :data:`SPEC`.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__(SPEC, pipeline)
        self.sent, self.replies, self.replied = 0, asyncio.Event(), 0
        self._flights = SingleFlight[None]()

    async def evaluate(self, items: Sequence[Item]) -> list[ItemResult]:
        async def ask(_item: Item) -> None:
            await self._flights.do("the question", "ann", self._call)

        await run_bounded(items, ask, 1)
        return []

    async def _call(self, turn: Turn) -> None:
        with turn:
            self.sent += 1
            await self.replies.wait()
            self.replied += 1


class AskingEngine(Engine):
    """Opens one session."""

    def __init__(self, session: ScoringSession) -> None:
        super().__init__()
        self._session = session

    async def open(self, spec: ScoreSpec) -> ScoringSession:
        return self._session


@pytest.mark.parametrize("wanted", [False, True])
async def test_calls_of_a_job_that_another_server_took_over_are_kept(wanted: bool) -> None:
    """Calls of a job that its owner cancelled are not."""
    session = AskingSession(open_pipeline(SPEC, Resources()))
    database = JudgedDatabase(report_bytes(session.report()))
    draining, changes, lock = asyncio.Event(), Changes(), LostLock()
    scoring = scoring_of(database, changes, draining, Clock(), AskingEngine(session))
    runner = JobRunner(scoring, lock, JobSettings(), Clock())
    running = asyncio.create_task(runner.run())
    await until(lambda: session.sent == 1)
    lock.lost = True
    if not wanted:
        runner.cancel(1)
    changes.notify()
    stopped = changes.next
    await until(stopped.is_set)
    draining.set()
    changes.notify()
    await running
    await runner.stop(Grace(0))
    session.replies.set()
    for _ in range(20):
        await asyncio.sleep(0)
    assert session.replied == wanted
