"""Jobs at a server: created, scored, watched, cancelled, and gone on with after a restart."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import grpc
import pytest
from support.engines import WatchedEngine
from support.jobs import states
from support.messages import expected_message
from support.rpc import refused

from hallujudge.judge.v1 import chair_pb2, jobs_pb2, jobs_pb2_grpc, scoring_pb2
from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import judge_service_pb2_grpc as pb_grpc
from hallujudge.judge_service.engine import Engine
from hallujudge.judge_service.errors import InvalidInputError, UnavailableError
from hallujudge.judge_service.jobs.job_service import JobService
from hallujudge.judge_service.server.server import start
from hallujudge.judge_service.settings.server_settings import (
    JobSettings,
    LimitSettings,
    ServerSettings,
)

SPEC = scoring_pb2.ScoreSpec(
    metric="chair", interval=scoring_pb2.IntervalSpec(confidence=0.95), group_by=["model"]
)
STATE = jobs_pb2.JobState


def items_of(count: int) -> list[pb.Item]:
    texts = ("A dog and a cat.", "A dog.", "", "A man with a surfboard.")
    return [
        pb.Item(
            id=str(number),
            fields={"model": "ab"[number % 2]},
            chair=chair_pb2.ChairTask(
                response=texts[number % 4],
                reference_objects=scoring_pb2.StringList(values=["dog", "person"]),
            ),
        )
        for number in range(count)
    ]


class Client:
    """The stubs of a running server."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.jobs: Any = jobs_pb2_grpc.ScoringJobServiceStub(channel)
        self.judge: Any = pb_grpc.JudgeServiceStub(channel)

    async def create(self, request_id: str = "r", **fields: Any) -> jobs_pb2.Job:
        request = jobs_pb2.CreateJobRequest(
            **{"spec": SPEC, "items": items_of(4), "request_id": request_id, **fields}
        )
        response: jobs_pb2.CreateJobResponse = await self.jobs.CreateJob(request)
        return response.job

    async def get(self, job: jobs_pb2.Job) -> jobs_pb2.Job:
        request = jobs_pb2.GetJobRequest(job_id=job.id)
        response: jobs_pb2.GetJobResponse = await self.jobs.GetJob(request)
        return response.job

    async def watched(
        self, job: jobs_pb2.Job, until: Callable[[jobs_pb2.Job], bool] = lambda job: False
    ) -> list[jobs_pb2.Job]:
        """Watch a job until it ends, or until a condition holds."""
        seen = []
        call = self.jobs.WatchJob(jobs_pb2.WatchJobRequest(job_id=job.id))
        async for response in call:
            seen.append(response.job)
            if until(response.job):
                call.cancel()
                break
        return seen

    async def results(self, job: jobs_pb2.Job, page_size: int = 3) -> list[jobs_pb2.JobResult]:
        found: list[jobs_pb2.JobResult] = []
        last = False
        while not last:
            page = await self.jobs.ListJobResults(jobs_pb2.ListJobResultsRequest(
                job_id=job.id, position=len(found), page_size=page_size, with_items=True
            ))  # fmt: skip
            found += page.results
            assert page.next_position == len(found)
            last = page.last
        return found


@asynccontextmanager
async def serving(
    address: str | None,
    engine: Engine | None = None,
    limits: JobSettings | None = None,
    now: Callable[[], float] = lambda: 1000.0,
) -> AsyncIterator[Client]:
    engine = engine or Engine()
    jobs = JobService(address, engine, limits, now=now) if address else None
    running = await start(ServerSettings(port=0), engine, jobs)
    try:
        async with grpc.aio.insecure_channel(running.address) as channel:
            yield Client(channel)
    finally:
        await running.stop(0)


async def error_of(call: Any) -> tuple[str, str]:
    with pytest.raises(grpc.RpcError) as told:
        await call
    code, reason = refused(told.value)
    return code.name, reason


async def test_a_job_has_the_results_and_the_report_of_a_call(jobs_address: str) -> None:
    items = items_of(150)
    async with serving(jobs_address) as client:
        job = await client.create(items=items[:70], more=True, note="mine")
        assert (job.state, job.items) == (STATE.JOB_STATE_OPEN, 70)
        added = await client.jobs.AddJobItems(
            jobs_pb2.AddJobItemsRequest(job_id=job.id, position=60, items=items[60:])
        )
        assert added.job.items == 150
        seen = await client.watched(job)
        assert (seen[-1].state, seen[-1].scored, seen[-1].unscored) == (
            STATE.JOB_STATE_DONE, 113, 37,
        )  # fmt: skip
        assert not any(job.HasField("spec") for job in seen)
        results = await client.results(job, page_size=64)
        report = (
            await client.jobs.GetJobReport(jobs_pb2.GetJobReportRequest(job_id=job.id))
        ).report
        whole = await client.judge.Score(pb.ScoreRequest(spec=SPEC, items=items))
        details = await client.jobs.GetJob(jobs_pb2.GetJobRequest(job_id=job.id))
        empty = await client.judge.Score(pb.ScoreRequest(spec=SPEC))
    assert [row.result for row in results] == list(whole.results)
    assert [row.item for row in results] == items
    assert report == whole.report
    assert details.header == empty.report
    assert (details.note, details.job.spec) == ("mine", SPEC)


async def test_a_request_creates_one_job(jobs_address: str) -> None:
    async with serving(jobs_address) as client:
        jobs = await asyncio.gather(*(client.create() for _ in range(8)))
        assert len({job.id for job in jobs}) == 1
        other = scoring_pb2.ScoreSpec(metric="chair", variant="corrected")
        assert await error_of(client.jobs.CreateJob(
            jobs_pb2.CreateJobRequest(request_id="r", spec=other)
        )) == ("ALREADY_EXISTS", "JOB_REQUEST_DIFFERS")  # fmt: skip
        listed = await client.jobs.ListJobs(jobs_pb2.ListJobsRequest())
        assert [job.id for job in listed.jobs] == [jobs[0].id]


async def test_a_request_id_is_not_used_again_for_other_items(jobs_address: str) -> None:
    items = items_of(5)
    async with serving(jobs_address) as client:
        job = await client.create(items=items[:3])
        for others, more in (
            (items[1:4], False),
            (items[:2], False),
            (items[:4], False),
            (items[:4], True),
            ([], False),
        ):
            request = jobs_pb2.CreateJobRequest(request_id="r", spec=SPEC, items=others, more=more)
            assert await error_of(client.jobs.CreateJob(request)) == (
                "ALREADY_EXISTS", "JOB_REQUEST_DIFFERS",
            )  # fmt: skip
        assert (await client.create(items=items[:3])).id == job.id
        grown = await client.create("s", items=items[:2], more=True)
        swapped = jobs_pb2.AddJobItemsRequest(job_id=grown.id, position=1, items=items[3:])
        assert await error_of(client.jobs.AddJobItems(swapped)) == (
            "ALREADY_EXISTS", "JOB_REQUEST_DIFFERS",
        )  # fmt: skip
        rest = jobs_pb2.AddJobItemsRequest(job_id=grown.id, position=1, items=items[1:])
        assert (await client.jobs.AddJobItems(rest)).job.items == 5
        # The answer was lost: the request is the first one again.
        assert (await client.create("s", items=items[:2], more=True)).id == grown.id


async def test_jobs_are_listed_in_pages(tmp_path: Path) -> None:
    async with serving(str(tmp_path / "jobs.sqlite")) as client:
        made = [(await client.create(str(number))).id for number in range(5)]
        found, token = [], ""
        while True:
            page = await client.jobs.ListJobs(
                jobs_pb2.ListJobsRequest(page_size=2, page_token=token)
            )
            found += [job.id for job in page.jobs]
            if not (token := page.next_page_token):
                break
        assert found == made[::-1]
        for token in ("x", "-1", "9" * 30, "²"):
            call = client.jobs.ListJobs(jobs_pb2.ListJobsRequest(page_token=token))
            assert await error_of(call) == ("INVALID_ARGUMENT", "INVALID_INPUT")


async def test_only_the_threads_of_the_database_use_it(tmp_path: Path) -> None:
    """A server that stops waits for these threads; another one would open a connection later."""
    names = set()

    def noted(event: str, values: tuple[object, ...]) -> None:
        if event == "sqlite3.connect" and str(values[0]).startswith(str(tmp_path)):
            names.add(threading.current_thread().name.rpartition("_")[0])

    sys.addaudithook(noted)
    async with serving(str(tmp_path / "jobs.sqlite")) as client:
        job = await client.create()
        assert (await client.watched(job))[-1].state == STATE.JOB_STATE_DONE
        await client.results(job)
        await client.jobs.GetJobReport(jobs_pb2.GetJobReportRequest(job_id=job.id))
        await client.jobs.DeleteJob(jobs_pb2.DeleteJobRequest(job_id=job.id))
    assert names == {"hallujudge-jobs"}


async def test_a_restarted_server_goes_on_and_repeats_nothing(jobs_address: str) -> None:
    """The first server stores 3 of 5 chunks, while one more is being scored."""
    items = items_of(320)
    first, second = WatchedEngine(), WatchedEngine()
    first.allowed = 3
    async with serving(jobs_address, first) as client:
        job = await client.create(items=items)
        await first.held.wait()
        await client.watched(job, lambda job: job.scored + job.unscored == 192)
    # It was cut off, but its server did not die.
    assert await asyncio.to_thread(states, jobs_address) == {"queued": 1}
    async with serving(jobs_address, second) as client:
        seen = await client.watched(job)
        assert seen[-1].state == STATE.JOB_STATE_DONE
        evaluated, callers = first.evaluated + second.evaluated, set(second.callers)
        results = await client.results(job, page_size=1000)
        report = await client.jobs.GetJobReport(jobs_pb2.GetJobReportRequest(job_id=job.id))
        whole = await client.judge.Score(pb.ScoreRequest(spec=SPEC, items=items))
    assert [row.result for row in results] == list(whole.results)
    assert report.report == whole.report
    assert len(first.evaluated) == 192
    # The caller pays for the job's calls, also after a restart.
    assert callers == first.callers == {"peer:ipv4:127.0.0.1"}
    assert evaluated == Counter(item.id for item in items)


async def test_a_cancelled_job_stops_and_can_be_deleted(jobs_address: str) -> None:
    engine = WatchedEngine()
    engine.allowed = 1
    async with serving(jobs_address, engine) as client:
        job = await client.create(items=items_of(300))
        await engine.held.wait()
        assert await error_of(client.jobs.DeleteJob(jobs_pb2.DeleteJobRequest(job_id=job.id))) == (
            "FAILED_PRECONDITION",
            "JOB_NOT_FINISHED",
        )
        cancelled = await client.jobs.CancelJob(jobs_pb2.CancelJobRequest(job_id=job.id))
        assert cancelled.job.state == STATE.JOB_STATE_CANCELLED
        assert (await client.watched(job))[-1].state == STATE.JOB_STATE_CANCELLED
        await client.jobs.DeleteJob(jobs_pb2.DeleteJobRequest(job_id=job.id))
        assert await error_of(client.jobs.GetJob(jobs_pb2.GetJobRequest(job_id=job.id))) == (
            "NOT_FOUND",
            "JOB_UNKNOWN",
        )


async def test_a_job_waits_for_a_judge_that_is_away(tmp_path: Path) -> None:
    engine, clock = WatchedEngine(), [1000.0]
    engine.failure = UnavailableError("the judge is away", reason="JUDGE_NO_PROGRESS")
    async with serving(str(tmp_path / "jobs"), engine, now=lambda: clock[0]) as client:
        job = await client.create()
        waiting = (await client.watched(job, lambda job: bool(job.problem)))[-1]
        assert (waiting.state, waiting.problem) == (STATE.JOB_STATE_QUEUED, "JUDGE_NO_PROGRESS")
        assert waiting.problem_detail == expected_message(
            "labels.calibration_tables:the-judge-is-away"
        )
        engine.failure = None
        clock[0] += 5
        await client.create()  # wakes the runner
        done = (await client.watched(job))[-1]
        assert (done.state, done.problem) == (STATE.JOB_STATE_DONE, "")


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (InvalidInputError("wrong key", reason="JUDGE_AUTH_FAILED"), "JUDGE_AUTH_FAILED"),
        (ValueError("a secret text"), "INTERNAL"),
    ],
)
async def test_a_job_that_cannot_go_on_fails(
    tmp_path: Path, failure: Any, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    engine = WatchedEngine()
    engine.failure = failure
    async with serving(str(tmp_path / "jobs"), engine) as client:
        job = (await client.watched(await client.create()))[-1]
        assert (job.state, job.problem) == (STATE.JOB_STATE_FAILED, reason)
        assert "secret" not in job.problem_detail
        assert (job.scored, job.unscored) == (0, 0)
        call = client.jobs.GetJobReport(jobs_pb2.GetJobReportRequest(job_id=job.id))
        assert await error_of(call) == ("FAILED_PRECONDITION", "JOB_NOT_FINISHED")
        page = await client.jobs.ListJobResults(jobs_pb2.ListJobResultsRequest(job_id=job.id))
        assert (list(page.results), page.last) == ([], False)


@pytest.mark.parametrize(
    ("now", "ends"),
    [
        (b"graph:cocp", ("FAILED", "JOB_CHANGED")),
        # The server behind a judge said its version to one life of ours, and not to the other.
        (b"graph:coco (vllm 0.32.0)", ("DONE", "")),
    ],
)
async def test_results_of_other_judges_are_never_mixed(
    now: bytes, ends: tuple[str, str], tmp_path: Path
) -> None:
    """The release of the server, or what is known of it, changes while a job is half done."""
    path = tmp_path / "jobs.sqlite"
    first = WatchedEngine()
    first.allowed = 1
    async with serving(str(path), first) as client:
        job = await client.create(items=items_of(200))
        await first.held.wait()
    with closing(sqlite3.connect(path)) as connection, connection:
        [header] = connection.execute("SELECT header FROM hallujudge_jobs").fetchone()
        report = scoring_pb2.Report.FromString(header)
        report.signature = report.signature.replace("graph:coco", now.decode())
        connection.execute("UPDATE hallujudge_jobs SET header = ?", (report.SerializeToString(),))
    async with serving(str(path)) as client:
        seen = (await client.watched(job))[-1]
        assert (STATE.Name(seen.state), seen.problem) == (f"JOB_STATE_{ends[0]}", ends[1])


@pytest.mark.parametrize("name", ["GetJob", "WatchJob", "CancelJob", "DeleteJob", "GetJobReport"])
async def test_absent_jobs_are_not_found(tmp_path: Path, name: str) -> None:
    async with serving(str(tmp_path / "jobs")) as client:
        request = getattr(jobs_pb2, f"{name}Request")(job_id="x" * 500)
        call = getattr(client.jobs, name)(request)
        if name == "WatchJob":
            call = anext(aiter(call))
        assert await error_of(call) == ("NOT_FOUND", "JOB_UNKNOWN")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"request_id": ""}, "INVALID_INPUT"),
        ({"request_id": "x" * 129}, "INVALID_INPUT"),
        ({"request_id": "a\0b"}, "INVALID_INPUT"),
        ({"note": "x" * (1 << 20 | 1)}, "INVALID_INPUT"),
        ({"note": "\0"}, "INVALID_INPUT"),
        ({"items": [pb.Item(id="1")]}, "INVALID_INPUT"),
        ({"items": [*items_of(3), *items_of(1)]}, "INVALID_INPUT"),
        ({"spec": scoring_pb2.ScoreSpec(metric="chair", variant="x")}, "INVALID_INPUT"),
        ({"items": items_of(11)}, "JOB_TOO_LARGE"),
    ],
)
async def test_what_cannot_be_a_job_is_refused(
    tmp_path: Path, fields: dict[str, Any], reason: str
) -> None:
    async with serving(str(tmp_path / "jobs"), limits=JobSettings(max_items=10)) as client:
        assert await error_of(client.create(**fields)) == ("INVALID_ARGUMENT", reason)
        listed = await client.jobs.ListJobs(jobs_pb2.ListJobsRequest())
        assert list(listed.jobs) == []


async def test_a_server_without_jobs_says_so() -> None:
    async with serving(None) as client:
        call = client.jobs.ListJobs(jobs_pb2.ListJobsRequest())
        assert await error_of(call) == ("UNIMPLEMENTED", "UNSUPPORTED")


async def test_a_server_without_jobs_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "data" / "jobs.sqlite"
    async with serving(str(path)) as client:
        await client.judge.GetServerInfo(pb.GetServerInfoRequest())
    assert not path.parent.exists()


async def test_a_stopping_server_ends_the_calls_that_watch(tmp_path: Path) -> None:
    engine = WatchedEngine()
    engine.allowed = 0
    service = JobService(str(tmp_path / "jobs"), engine)
    running = await start(ServerSettings(port=0), engine, service)
    async with grpc.aio.insecure_channel(running.address) as channel:
        client = Client(channel)
        job = await client.create()
        await engine.held.wait()
        call = aiter(client.jobs.WatchJob(jobs_pb2.WatchJobRequest(job_id=job.id)))
        await anext(call)
        stopping = asyncio.create_task(running.stop(0.1))
        told = await error_of(_rest(call))
        assert told == ("UNAVAILABLE", "SERVER_DRAINING")
        await stopping


async def _rest(call: Any) -> None:
    async for _ in call:
        pass


async def test_calls_that_watch_take_no_place_of_calls_that_work(tmp_path: Path) -> None:
    engine = WatchedEngine()
    engine.allowed = 0
    service = JobService(str(tmp_path / "jobs"), engine)
    settings = ServerSettings(
        port=0, limits=LimitSettings(max_running_calls=1, max_waiting_calls=1)
    )
    running = await start(settings, engine, service)
    try:
        async with grpc.aio.insecure_channel(running.address) as channel:
            client = Client(channel)
            job = await client.create()
            request = jobs_pb2.WatchJobRequest(job_id=job.id)
            calls = [aiter(client.jobs.WatchJob(request)) for _ in range(2)]
            for call in calls:
                await anext(call)
            assert (await client.get(job)).id == job.id
            assert await error_of(anext(aiter(client.jobs.WatchJob(request)))) == (
                "RESOURCE_EXHAUSTED",
                "SERVER_OVERLOADED",
            )
    finally:
        await running.stop(0)


async def test_a_database_that_cannot_be_used_is_the_servers_fault(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    async with serving(str(tmp_path / "file" / "jobs.sqlite")) as client:
        with pytest.raises(grpc.RpcError) as told:
            await client.create()
        assert refused(told.value) == (grpc.StatusCode.UNAVAILABLE, "JOBS_UNAVAILABLE")
        assert str(tmp_path) not in str(told.value)


async def test_no_job_is_taken_while_the_database_is_away_and_none_is_lost(tmp_path: Path) -> None:
    path, items = tmp_path / "jobs.sqlite", items_of(8)
    async with serving(str(path)) as client:
        job = await client.create(items=items[:4], more=True)
        path.rename(tmp_path / "aside")
        more = jobs_pb2.AddJobItemsRequest(job_id=job.id, position=4, items=items[4:])
        for call in (client.create("other"), client.jobs.AddJobItems(more), client.get(job)):
            assert await error_of(call) == ("UNAVAILABLE", "JOBS_LOST")
        assert not path.exists()
        (tmp_path / "aside").rename(path)
        await client.jobs.AddJobItems(more)
        assert (await client.watched(job))[-1].state == STATE.JOB_STATE_DONE
        assert len(await client.results(job)) == 8
