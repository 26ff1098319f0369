"""Scoring of a job while its database fails, and when jobs count as still."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence, Set
from contextlib import closing
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from support.clocks import Clock
from support.threads import PATIENCE

from hallujudge.judge_service.engine import Engine
from hallujudge.judge_service.engine.spec import ScoreSpec
from hallujudge.judge_service.errors import OverloadedError, UnavailableError
from hallujudge.judge_service.flights import Flights
from hallujudge.judge_service.jobs import Answer, Job, JobState, Problem, ScoredChunk
from hallujudge.judge_service.jobs.job_progress import Activity, Changes
from hallujudge.judge_service.jobs.job_scoring import (
    MAX_CONCURRENCY,
    DatabaseThreads,
    JobScoring,
    Lanes,
    StoppedError,
)
from hallujudge.judge_service.observe import JobsActivity
from hallujudge.judge_service.stopping import CallDrain
from hallujudge.judge_service.wire.convert import (
    item_to_proto,
    report_bytes,
    report_of,
    result_bytes,
    spec_to_proto,
)
from hallujudge.metrics import ChairItem

SPEC = ScoreSpec(metric="chair")
ITEM = ChairItem(id="1", response="A dog and a cat.", reference_objects=("dog",))


class FailingDatabase:
    """The progress of one job; its first writes fail."""

    def __init__(self, header: bytes, failures: Sequence[Exception]) -> None:
        self.kept = header
        self.failures = list(failures)
        self.answers: list[Answer] = []
        self.report = b""
        self.in_flight: Set[int] = frozenset()
        self.flown: Set[int] = frozenset()

    def begin(self, number: int) -> bool:
        return True

    def land(self, number: int) -> None:
        return None

    def fly(self, number: int, added: Set[int], left: Set[int]) -> None:
        self.in_flight = (self.in_flight | added) - left
        self.flown |= added

    def next_trial(self, number: int) -> None:
        return None

    def header(self, number: int) -> bytes:
        return self.kept

    def chunk(
        self, number: int, after: int, *, answered: bool, **_: int
    ) -> list[tuple[int, bytes]]:
        if after >= 0 or bool(self.answers) is not answered:
            return []
        return [
            (0, self.answers[0].result if answered else item_to_proto(ITEM).SerializeToString())
        ]

    def store(self, number: int, answers: Sequence[Answer]) -> bool:
        if self.failures:
            raise self.failures.pop(0)
        self.answers += answers
        return True

    def finish(self, number: int, report: bytes, now: float) -> bool:
        self.report = report
        return True


JOB = Job(
    number=1,
    id="j",
    owner="ann",
    caller="",
    request_id="r",
    state=JobState.QUEUED,
    spec=spec_to_proto(SPEC).SerializeToString(),
    items=1,
    bytes=1,
    scored=0,
    unscored=0,
    problem=Problem(),
    created_at=0.0,
    finished_at=None,
)


def scoring_of(database: Any, threads: DatabaseThreads, **more: Any) -> JobScoring:
    draining = asyncio.Event()
    return JobScoring(
        progress=database,
        suspicions=database,
        threads=threads,
        changes=Changes(),
        activity=Activity(),
        draining=draining,
        calls=CallDrain(draining),
        now=lambda: 0.0,
        lanes=Lanes(8),
        **more,
    )


async def test_results_wait_until_the_database_takes_them() -> None:
    engine, slept = Engine(), []
    session = await engine.open(SPEC)
    database: Any = FailingDatabase(
        report_bytes(session.report()),
        [UnavailableError("locked"), OverloadedError("full"), UnavailableError("locked")],
    )

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    with closing(DatabaseThreads()) as threads:
        await scoring_of(database, threads, engine=engine, sleep=sleep).score(JOB)
    assert len(slept) == 3
    assert [(answer.position, answer.scored, answer.reason) for answer in database.answers] == [
        (0, True, "")
    ]
    report = report_of(database.report)
    assert (report.coverage.items, report.scores["chair_i"].value) == (1, 0.5)


async def test_a_chunk_that_was_read_when_the_drain_began_is_not_scored() -> None:
    session = await Engine().open(SPEC)
    database: Any = FailingDatabase(report_bytes(session.report()), [])
    with closing(DatabaseThreads()) as threads:
        scoring = scoring_of(database, threads, engine=Engine())
        read = database.chunk

        def drained(*arguments: Any, **more: Any) -> list[tuple[int, bytes]]:
            scoring.draining.set()
            found: list[tuple[int, bytes]] = read(*arguments, **more)
            return found

        database.chunk = drained
        with pytest.raises(StoppedError):
            await scoring.score(JOB)
    assert database.answers == []


async def test_results_of_an_earlier_run_enter_the_report_unscored_again() -> None:
    engine = Engine()
    session = await engine.open(SPEC)
    [result] = await session.evaluate([ITEM])
    database: Any = FailingDatabase(report_bytes(session.report()), [])
    kept = Answer(position=0, scored=True, reason="", result=result_bytes(result))
    database.answers.append(kept)
    with closing(DatabaseThreads()) as threads:
        await scoring_of(database, threads, engine=engine).score(replace(JOB, scored=1))
    assert database.answers == [kept]
    report = report_of(database.report)
    assert (report.coverage.items, report.scores["chair_i"].value) == (1, 0.5)


async def test_workers_score_what_needs_no_model() -> None:
    engine = Engine()
    session = await engine.open(SPEC)
    [result] = await session.evaluate([ITEM])
    database: Any = FailingDatabase(report_bytes(session.report()), [])
    asked: list[Sequence[bytes]] = []

    class Work:
        def __init__(self, spec: bytes, metric: str) -> None:
            assert (spec, metric) == (JOB.spec, "chair")
            self.shares: list[bytes] = []

        async def score(self, contents: Sequence[bytes], flights: Flights) -> ScoredChunk:
            async with flights.all():
                asked.append(contents)
                assert database.in_flight == {0}
            return ScoredChunk([""], [result_bytes(result)], b"a share")

        async def unscored(self, contents: Sequence[bytes], died: str) -> ScoredChunk:
            raise AssertionError(contents, died)

        async def share_of(self, results: Sequence[bytes]) -> bytes:
            raise AssertionError(results)

        async def add(self, share: bytes) -> None:
            self.shares.append(share)

        async def report(self) -> bytes:
            return b"of " + b"".join(self.shares)

    with closing(DatabaseThreads()) as threads:
        await scoring_of(database, threads, engine=engine, workers=Work).score(JOB)
    assert database.flown == {0}
    assert asked == [[item_to_proto(ITEM).SerializeToString()]]
    assert [answer.result for answer in database.answers] == [result_bytes(result)]
    assert database.report == b"of a share"


class Chunks:
    """Chunks of owners that always want another one, and end when the test says so."""

    def __init__(self, lanes: Lanes) -> None:
        self.begun: list[str] = []
        self.under_way: list[tuple[str, asyncio.Event]] = []
        self.waiting: Counter[str] = Counter()
        self._lanes = lanes

    async def of(self, owner: str) -> None:
        with closing(self._lanes.turns(replace(JOB, owner=owner), judged=True)) as turns:
            while True:
                self.waiting[owner] += 1
                await turns.enter()
                self.waiting[owner] -= 1
                self.begun.append(owner)
                self.under_way.append((owner, end := asyncio.Event()))
                await end.wait()
                turns.leave()

    async def end(self, place: int) -> list[str]:
        """End a chunk; return the owners of those that begin, none if it had a place beyond."""
        count = len(self.begun)
        self.under_way.pop(place)[1].set()
        await settled()
        return self.begun[count:]


async def settled() -> None:
    """Let every task run that can: a chunk that ends wakes another one within three rounds."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.parametrize(("places", "seed"), [(4, 1), (16, 2), (32, 3)])
async def test_while_an_owner_waits_at_most_two_chunks_of_another_begin(
    places: int, seed: int
) -> None:
    random, chunks, between = Random(seed), Chunks(Lanes(places)), [0]
    tasks = [asyncio.ensure_future(chunks.of("ann")) for _ in range(6 * MAX_CONCURRENCY)]
    await settled()
    assert chunks.begun == ["ann"] * places
    tasks += [asyncio.ensure_future(chunks.of("ben")) for _ in range(MAX_CONCURRENCY)]
    await settled()
    assert chunks.begun[places:] == ["ben"]  # without a chunk under way it does not wait
    for _ in range(1000):
        waits = chunks.waiting["ben"] > 0
        begun = await chunks.end(random.randrange(len(chunks.under_way)))
        if "ben" in begun or not waits:
            between.append(0)
        # Each owner has a first chunk in any case.
        elif [owner for owner, _ in chunks.under_way].count("ann") > 1:
            between.append(between[-1] + len(begun))
    for task in tasks:
        task.cancel()
    assert max(between) in (1, 2)
    assert chunks.begun.count("ben") > 200


async def test_chunks_with_and_without_a_judge_never_wait_for_each_other() -> None:
    lanes = Lanes(1)
    with closing(lanes.turns(JOB, judged=True)) as judged:
        await judged.enter()
        with closing(lanes.turns(JOB, judged=False)) as other:
            async with asyncio.timeout(PATIENCE):
                await other.enter()
        waiting = asyncio.ensure_future(judged.enter())
        await asyncio.sleep(0)
        assert not waiting.done()
    # What a job holds when it ends is free again, whatever became of its chunks.
    await waiting


def test_jobs_are_still_while_some_wait_and_nothing_is_heard_of_them() -> None:
    clock = Clock(100.0)
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
    clock = Clock(100.0)
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
    clock = Clock(100.0)
    activity = Activity(clock)
    activity.begin()
    clock.now += 60
    assert activity.state == JobsActivity(still_seconds=60)
