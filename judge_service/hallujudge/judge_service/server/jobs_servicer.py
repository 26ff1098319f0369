"""The gRPC service for jobs, and the job service that a server's settings describe."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial

from hallujudge.judge.v1 import jobs_pb2 as pb
from hallujudge.judge.v1 import jobs_pb2_grpc as pb_grpc
from hallujudge.judge.v1 import judge_service_pb2, scoring_pb2

from ..access import Scope, current_caller
from ..engine import Engine
from ..engine.spec import ScoreSpec
from ..errors import InvalidInputError, UnsupportedError
from ..flights import Flights
from ..jobs import Job, NewItem, NewJob, ScoredChunk, current_owner, kept_caller
from ..jobs.job_service import JobService
from ..jobs.job_store import JobStore
from ..settings.judge_settings import JudgeSettings
from ..settings.loading import ResolvedSettings, state_folder
from ..settings.server_settings import LimitSettings
from ..state_files import create_folder
from ..tenancy import tenancy
from ..wire.convert import spec_from_proto
from .interceptors import Context
from .request_checks import (
    admitted_spec,
    check_count,
    check_unique,
    items_from_proto,
    loaded_metric,
)
from .worker_tasks import Task
from .workers import Tallies, Workers

_PREFIX = "JOB_STATE_"
# The fields that a job and its message have alike.
_SAME = (
    *("id", "owner", "request_id", "items", "scored", "unscored"),
    *("created_at", "finished_at", "verdicts"),
)
_LOG = logging.getLogger(__name__)

# The value of jobs.database without jobs.
_OFF = "off"
_DATABASE = "jobs.sqlite"
_VERDICTS = "verdicts.sqlite"

# Page sizes, by default and at most.
_JOBS = 100
_MOST_JOBS = 1000
_RESULTS = 1000
# A page of results that fits the default limit of every gRPC client (4 MiB).
_PAGE_BYTES = 2 << 20
# Room for a note in a report that is too large.
_NOTE_BYTES = 1024
# The largest integer that SQLite takes.
_MOST_POSITION = 2**62


def job_to_proto(job: Job) -> pb.Job:
    """Return a job as a message, with its spec if it was loaded."""
    message = pb.Job(
        **{name: getattr(job, name) for name in _SAME},
        state=pb.JobState.Value(f"{_PREFIX}{job.state.name}"),
        problem=job.problem.reason,
        problem_detail=job.problem.detail,
    )
    if job.spec:
        message.spec.ParseFromString(job.spec)
    return message


def number_of_token(token: str) -> int | None:
    """Return the number of the job before a page; None for the first page.

    Raises:
        InvalidInputError: The token is not one that the server sent.
    """
    if not token:
        return None
    # 18 digits fit the integers of the database.
    if not (token.isascii() and token.isdigit() and len(token) < 19):
        raise InvalidInputError(
            f"page_token {token[:40]!r} is not one of this server; send next_page_token of the "
            "page before, or nothing"
        )
    return int(token)


class JobsServicer(pb_grpc.ScoringJobServiceServicer):
    """Implements the RPCs of jobs.

    Args:
        jobs: The jobs, or None if the server keeps none.
        settings: The limits of calls.
    """

    def __init__(self, jobs: JobService | None, settings: LimitSettings) -> None:
        self._kept = jobs
        self._settings = settings

    async def CreateJob(
        self, request: pb.CreateJobRequest, context: Context
    ) -> pb.CreateJobResponse:
        """Create a job with its first items."""
        spec = await admitted_spec(request.spec)
        items = await self._items(spec, request.items)
        new = NewJob(
            owner=current_owner(),
            caller=kept_caller(),
            request_id=request.request_id,
            # A repeated request is recognised by the bytes of its spec, which must then be equal.
            spec=request.spec.SerializeToString(deterministic=True),
            note=request.note,
        )
        job = await self._jobs.create(new, spec, items, more=request.more)
        return pb.CreateJobResponse(job=job_to_proto(job))

    async def AddJobItems(
        self, request: pb.AddJobItemsRequest, context: Context
    ) -> pb.AddJobItemsResponse:
        """Add items to an open job."""
        details = await self._jobs.get(current_owner(), request.job_id)
        spec = spec_from_proto(scoring_pb2.ScoreSpec.FromString(details.job.spec))
        items = await self._items(spec, request.items)
        job = await self._jobs.add(
            current_owner(), request.job_id, request.position, items, more=request.more
        )
        return pb.AddJobItemsResponse(job=job_to_proto(job))

    async def GetJob(self, request: pb.GetJobRequest, context: Context) -> pb.GetJobResponse:
        """Return a job with everything that is stored with it, except its items."""
        details = await self._jobs.get(current_owner(), request.job_id)
        return pb.GetJobResponse(
            job=job_to_proto(details.job),
            header=scoring_pb2.Report.FromString(details.header),
            note=details.note,
        )

    async def ListJobs(self, request: pb.ListJobsRequest, context: Context) -> pb.ListJobsResponse:
        """List jobs, the newest first."""
        if request.all:
            current_caller().require(Scope.ADMIN)
        owner = None if request.all else current_owner()
        size = min(request.page_size or _JOBS, _MOST_JOBS)
        before = number_of_token(request.page_token)
        # One more than a page has tells whether there is another page.
        found = await self._jobs.ask(JobStore.list, owner, size + 1, before)
        jobs = found[:size]
        return pb.ListJobsResponse(
            jobs=[job_to_proto(job) for job in jobs],
            next_page_token=str(jobs[-1].number) if len(found) > size else "",
        )

    async def WatchJob(
        self, request: pb.WatchJobRequest, context: Context
    ) -> AsyncGenerator[pb.WatchJobResponse, None]:
        """Return a job now and after every change."""
        async with aclosing(self._jobs.watch(current_owner(), request.job_id)) as changes:
            async for job in changes:
                message = job_to_proto(job)
                # It may hold a synonym graph, which is too much for each change.
                message.ClearField("spec")
                yield pb.WatchJobResponse(job=message)

    async def CancelJob(
        self, request: pb.CancelJobRequest, context: Context
    ) -> pb.CancelJobResponse:
        """Cancel a job; an administrator cancels those of all callers."""
        owner = None if current_caller().is_admin else current_owner()
        job = await self._jobs.cancel(owner, request.job_id)
        return pb.CancelJobResponse(job=job_to_proto(job))

    async def DeleteJob(
        self, request: pb.DeleteJobRequest, context: Context
    ) -> pb.DeleteJobResponse:
        """Delete a finished job."""
        await self._jobs.delete(current_owner(), request.job_id)
        return pb.DeleteJobResponse()

    async def ListJobResults(
        self, request: pb.ListJobResultsRequest, context: Context
    ) -> pb.ListJobResultsResponse:
        """List results by position."""
        page = await self._jobs.ask(
            JobStore.results,
            current_owner(),
            request.job_id,
            min(request.position, _MOST_POSITION),
            count=min(request.page_size or _RESULTS, self._settings.max_batch_items),
            max_bytes=min(_PAGE_BYTES, self._settings.max_message_bytes // 2),
            with_items=request.with_items,
        )
        return pb.ListJobResultsResponse(
            results=[
                pb.JobResult(
                    result=judge_service_pb2.ItemResult.FromString(row.result),
                    item=None if row.item is None else judge_service_pb2.Item.FromString(row.item),
                )
                for row in page.results
            ],
            next_position=page.next_position,
            last=page.last,
        )

    async def GetJobReport(
        self, request: pb.GetJobReportRequest, context: Context
    ) -> pb.GetJobReportResponse:
        """Return the report of a job that is done."""
        content = await self._jobs.ask(JobStore.report, current_owner(), request.job_id)
        response = pb.GetJobReportResponse(report=scoring_pb2.Report.FromString(content))
        limit = self._settings.max_message_bytes - _NOTE_BYTES
        if (size := response.ByteSize()) > limit:
            response.report.ClearField("groups")
            response.report.notes.append(
                f"This response leaves out groups: with them it has {size} bytes, and a message "
                "may have less (limits.max_message_bytes). The results have the fields of the "
                "items."
            )
        return response

    @property
    def _jobs(self) -> JobService:
        if self._kept is None:
            raise UnsupportedError(
                "this server runs no jobs (jobs.database is off); score without a job"
            )
        return self._kept

    async def _items(
        self, spec: ScoreSpec, messages: Sequence[judge_service_pb2.Item]
    ) -> list[NewItem]:
        """Return items as they are stored, after checking them."""
        check_count(self._settings.max_batch_items, len(messages), "items")
        entry = await loaded_metric(spec.metric)
        items = items_from_proto(messages, entry.item_type)
        check_unique(items)
        # Items are parsed again when they are scored: to keep them would take more memory than that
        # takes time, 10 of the 350 µs of a caption.
        # Deterministic, so that a repeated request has the same bytes.
        return [NewItem(one.id, one.SerializeToString(deterministic=True)) for one in messages]


def job_service(
    resolved: ResolvedSettings,
    engine: Engine,
    workers: Workers | None = None,
    opened: Callable[[str], None] = lambda _id: None,
) -> JobService | None:
    """Return the job service that the settings describe, if they allow jobs.

    Args:
        resolved: The settings of the server and its judges.
        engine: Scores items.
        workers: Worker processes for scoring without models; by default the engine does it.
        opened: Called in a thread with the id of a file of jobs that was opened.
    """
    if not (address := jobs_address(resolved)):
        return None
    helpers = None if workers is None else partial(WorkersOfJob, workers)
    return JobService(address, engine, resolved.server.jobs, workers=helpers, opened=opened)


def jobs_address(resolved: ResolvedSettings) -> str:
    """Return the address of the jobs' database; empty if the server runs no jobs."""
    address = resolved.server.jobs.database
    if address == _OFF:
        return ""
    return address or str(state_folder(resolved.judges) / _DATABASE)


class WorkersOfJob:
    """Scores the items of a job in worker processes, which also make its report.

    Args:
        pool: The workers.
        spec: How items are scored.
        metric: The name of the metric.
    """

    def __init__(self, pool: Workers, spec: bytes, metric: str) -> None:
        self._pool = pool
        self._spec = spec
        self._metric = metric
        self._tallies = Tallies(pool, spec)

    async def score(
        self,
        contents: Sequence[bytes],
        flights: Flights,
    ) -> ScoredChunk:
        """Score items."""
        async with flights.all():
            replies = await self._pool.run_items(
                self._task("items", *contents),
                lambda: [self._task("items", content) for content in contents],
            )
        for reply in replies:
            tenancy().record_outcomes(self._metric, reply.outcomes, reply.evaluated)
        return ScoredChunk(
            [reason for reply in replies for reason in reply.reasons],
            [result for reply in replies for result in reply.parts[1:]],
            [reply.parts[0] for reply in replies],
        )

    async def unscored(self, contents: Sequence[bytes], died: str) -> ScoredChunk:
        """Return results of items that are not scored."""
        reply = await self._pool.run(replace(self._task("items", *contents), died=died))
        tenancy().record_outcomes(self._metric, reply.outcomes, reply.evaluated)
        return ScoredChunk(reply.reasons, reply.parts[1:], reply.parts[:1])

    async def share_of(self, results: Sequence[bytes]) -> Sequence[bytes]:
        """Return the tally of stored results."""
        return (await self._pool.run(self._task("tally", *results))).parts

    async def add(self, share: Sequence[bytes]) -> None:
        """Add tallies to the report."""
        for tally in share:
            await self._tallies.add(tally)

    def _task(self, kind: str, *contents: bytes) -> Task:
        return Task(kind=kind, parts=(self._spec, *contents))

    async def report(self) -> bytes:
        """Return the report."""
        return (await self._tallies.report("job_report")).parts[0]


def with_verdict_cache(resolved: ResolvedSettings) -> JudgeSettings:
    """Return the settings of the judges, with a verdict cache if the server runs jobs.

    An item that was in progress when the server stopped has no result yet. The cache keeps the
    verdicts on its claims, so that no call is paid for twice.
    """
    judges = resolved.judges
    called = judges.llm.url or judges.vllm.model or judges.fallback.model
    if judges.verdict_cache or not called or not jobs_address(resolved):
        return judges
    folder = state_folder(judges)
    try:
        create_folder(folder)
    except OSError as err:
        _LOG.warning(
            "verdicts are not kept: %s can't be created (%s); set data_folder or verdict_cache",
            folder,
            err.strerror or err,
        )
        return judges
    return replace(judges, verdict_cache=str(folder / _VERDICTS))
