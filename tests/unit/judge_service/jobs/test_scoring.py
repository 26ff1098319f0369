"""Scoring of a job while its database fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import closing
from typing import Any

import pytest

from hallujudge.judge_service.engine import Engine
from hallujudge.judge_service.engine.spec import ScoreSpec
from hallujudge.judge_service.errors import OverloadedError, UnavailableError
from hallujudge.judge_service.jobs.job import Answer, Job, JobState, Problem, ScoredBytes
from hallujudge.judge_service.jobs.job_scoring import (
    Activity,
    Changes,
    DatabaseThreads,
    JobScoring,
    StoppedError,
)
from hallujudge.judge_service.stopping import CallDrain
from hallujudge.judge_service.wire.convert import item_to_proto, spec_to_proto
from hallujudge.judge_service.wire.job_messages import WireCodec
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

    def begin(self, number: int) -> bool:
        return True

    def header(self, number: int) -> bytes:
        return self.kept

    def unanswered(self, number: int, after: int, **_: int) -> list[tuple[int, bytes]]:
        return [(0, item_to_proto(ITEM).SerializeToString())] if after < 0 else []

    def store(self, number: int, answers: Sequence[Answer]) -> bool:
        if self.failures:
            raise self.failures.pop(0)
        self.answers += answers
        return True

    def results(self, number: int) -> Iterator[list[bytes]]:
        yield [answer.result for answer in self.answers]

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
        codec=WireCodec(),
        progress=database,
        threads=threads,
        changes=Changes(),
        activity=Activity(),
        draining=draining,
        calls=CallDrain(draining),
        now=lambda: 0.0,
        **more,
    )


async def test_results_wait_until_the_database_takes_them() -> None:
    engine, codec, slept = Engine(), WireCodec(), []
    session = await engine.open(SPEC)
    database: Any = FailingDatabase(
        codec.report_bytes(session.report()),
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
    report = codec.report(database.report)
    assert (report.coverage.items, report.scores["chair_i"].value) == (1, 0.5)


async def test_a_chunk_that_was_read_when_the_drain_began_is_not_scored() -> None:
    codec = WireCodec()
    session = await Engine().open(SPEC)
    database: Any = FailingDatabase(codec.report_bytes(session.report()), [])
    with closing(DatabaseThreads()) as threads:
        scoring = scoring_of(database, threads, engine=Engine())
        read = database.unanswered

        def drained(*arguments: Any, **more: Any) -> list[tuple[int, bytes]]:
            scoring.draining.set()
            found: list[tuple[int, bytes]] = read(*arguments, **more)
            return found

        database.unanswered = drained
        with pytest.raises(StoppedError):
            await scoring.score(JOB)
    assert database.answers == []


async def test_workers_score_what_needs_no_model() -> None:
    engine, codec = Engine(), WireCodec()
    session = await engine.open(SPEC)
    [result] = await session.evaluate([ITEM])
    database: Any = FailingDatabase(codec.report_bytes(session.report()), [])
    asked: list[tuple[bytes, Sequence[bytes]]] = []

    class Workers:
        async def score(self, spec: bytes, contents: Sequence[bytes]) -> list[ScoredBytes]:
            asked.append((spec, contents))
            return [ScoredBytes("", codec.result_bytes(result))]

        async def report(self, spec: bytes, pages: AsyncIterator[Sequence[bytes]]) -> bytes:
            assert spec == JOB.spec
            return b"of " + b"".join([content async for page in pages for content in page])

    with closing(DatabaseThreads()) as threads:
        await scoring_of(database, threads, engine=engine, workers=Workers()).score(JOB)
    assert asked == [(JOB.spec, [item_to_proto(ITEM).SerializeToString()])]
    assert database.report == b"of " + codec.result_bytes(result)
