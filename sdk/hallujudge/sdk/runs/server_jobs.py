"""Runs that a server keeps as jobs: submitted, watched, cancelled, and fetched into a folder."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import structs

from hallujudge.judge.v1 import jobs_pb2 as pb
from hallujudge.judge.v1 import jobs_pb2_grpc as pb_grpc
from hallujudge.judge_service.engine.spec import RunHeader, header_of
from hallujudge.judge_service.wire import convert as _convert
from hallujudge.judge_service.wire.convert import with_graphs
from hallujudge.metrics import Item, ItemResult, Report

from .. import runs
from ..archives.inputs import ItemSource
from ..backends import BatchResult
from ..backends.remote import RemoteBackend
from ..errors import HallujudgeError, InvalidInputError
from .manifest import Manifest
from .parts import Part, PartMaker, batches_of
from .run_inputs import PreparedRun, manifest_of
from .score_run import SaveOptions, input_notes

if TYPE_CHECKING:
    from hallujudge.judge_service.engine.spec import ScoreSpec

    from .folder import RunFolder
    from .scoring import RunWatch


FINISHED_STATES = frozenset({"done", "failed", "cancelled"})
"""States that a job does not leave."""
_STATES = FINISHED_STATES | {"open", "queued", "running"}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobInfo:
    """A run that a server keeps."""

    id: str
    """Id of the job."""
    request_id: str
    """Id of the request that created it; repeating the request creates no second job."""
    state: str
    """``open``, ``queued``, ``running``, ``done``, ``failed`` or ``cancelled``."""
    items: int
    """Number of items."""
    scored: int
    """Items with a score."""
    unscored: int
    """Items that are unscored for a reason."""
    problem: str
    """Why the job failed or waits; empty if there is no problem."""
    problem_detail: str
    """The problem in words."""
    created_at: float
    """When the job was created, in seconds since 1970."""
    finished_at: float | None
    """When the job was done, failed or cancelled."""
    owner: str = ""
    """The caller that created it, such as ``key:abcdefgh``."""
    verdicts: Mapping[str, int] = field(default_factory=dict)
    """Verdicts that each judge gave since the server began or went on with it."""

    @property
    def is_finished(self) -> bool:
        """Whether the job is done, failed or cancelled."""
        return self.state in FINISHED_STATES


OnJobChange: TypeAlias = "Callable[[JobInfo], None]"
"""Callback for a job now and after every change."""


# Results of one page; the server ends it earlier if it becomes too large for a message.
_PAGE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class JobContent:
    """A job with everything that the server keeps of it, except its items."""

    info: JobInfo
    """The job."""
    spec: ScoreSpec
    """How its items are scored."""
    header: Report
    """Its report of no items."""
    note: str
    """The text that was stored with it."""


class RemoteJobs:
    """The jobs of a server.

    Args:
        backend: The connection to the server.
    """

    def __init__(self, backend: RemoteBackend) -> None:
        self._backend = backend

    async def create(self, spec: ScoreSpec, request_id: str, note: str) -> JobInfo:
        """Create a job without items, or return the one that the request created before."""
        request = pb.CreateJobRequest(
            request_id=request_id, spec=_convert.spec_to_proto(spec), note=note, more=True
        )
        return _info((await self._call("CreateJob", request)).job)

    async def add(
        self, job_id: str, position: int, items: Sequence[Item], *, more: bool
    ) -> JobInfo:
        """Add items to an open job.

        Args:
            job_id: The job.
            position: Position of the first item.
            items: The items.
            more: Whether more will be added.
        """
        request = pb.AddJobItemsRequest(
            job_id=job_id,
            position=position,
            items=[_convert.item_to_proto(item) for item in items],
            more=more,
        )
        return _info((await self._call("AddJobItems", request)).job)

    async def get(self, job_id: str) -> JobContent:
        """Return a job."""
        response = await self._call("GetJob", pb.GetJobRequest(job_id=job_id))
        return JobContent(
            info=_info(response.job),
            spec=_convert.spec_from_proto(response.job.spec),
            header=_convert.report_from_proto(response.header),
            note=response.note,
        )

    async def listed(self, *, all_callers: bool = False) -> list[JobInfo]:
        """Return the caller's jobs, or those of all callers, the newest first."""
        jobs: list[JobInfo] = []
        token = ""
        while True:
            page = await self._call(
                "ListJobs", pb.ListJobsRequest(page_token=token, all=all_callers)
            )
            jobs += map(_info, page.jobs)
            token = page.next_page_token
            if not token:
                return jobs

    async def watch(self, job_id: str) -> AsyncGenerator[JobInfo, None]:
        """Yield a job now and after every change, until it is finished."""
        stub = await self._backend.service(pb_grpc.ScoringJobServiceStub)
        request = pb.WatchJobRequest(job_id=job_id)
        async with aclosing(self._backend.streamed(stub.WatchJob, request)) as responses:
            async for response in responses:
                yield _info(response.job)

    async def wait(self, job_id: str, on_change: OnJobChange | None = None) -> JobInfo:
        """Return a job when it is finished, also if its server is away for a while.

        Args:
            job_id: The job.
            on_change: Called with the job now and after every change.

        Raises:
            UnavailableError: The server was away for too long.
        """
        reconnecting = self._backend.reconnecting()
        # Each connection starts with the job as it is now: it may have changed in the meantime.
        while True:
            try:
                async with aclosing(self.watch(job_id)) as changes:
                    async for info in changes:
                        reconnecting.back()
                        if on_change is not None:
                            on_change(info)
                        if info.is_finished:
                            return info
            except HallujudgeError as err:
                await asyncio.sleep(reconnecting.lost(err))

    async def report(self, job_id: str) -> Report:
        """Return the report of a job that is done, with the notes of the run that created it."""
        response = await self._call("GetJobReport", pb.GetJobReportRequest(job_id=job_id))
        made = _convert.report_from_proto(response.report)
        return replace(made, notes=(*await self._notes(job_id), *made.notes))

    async def _notes(self, job_id: str) -> tuple[str, ...]:
        """Return the notes on a job's references; other programs than this client keep none."""
        content = await self.get(job_id)
        try:
            manifest = Manifest.of_text(content.note, f"note of job {job_id}")
        except HallujudgeError:
            return ()
        return without_notes(manifest)[1]

    async def cancel(self, job_id: str) -> JobInfo:
        """Cancel a job, unless it is finished."""
        return _info((await self._call("CancelJob", pb.CancelJobRequest(job_id=job_id))).job)

    async def delete(self, job_id: str) -> None:
        """Delete a finished job."""
        await self._call("DeleteJob", pb.DeleteJobRequest(job_id=job_id))

    async def results(
        self, job_id: str, position: int
    ) -> AsyncGenerator[list[tuple[Item, ItemResult]], None]:
        """Yield pages of items with their results, starting at a position."""
        last = False
        while not last:
            request = pb.ListJobResultsRequest(
                job_id=job_id, position=position, page_size=_PAGE, with_items=True
            )
            page = await self._call("ListJobResults", request)
            items = [_convert.item_from_proto(row.item) for row in page.results]
            results = [_convert.result_from_proto(row.result) for row in page.results]
            yield list(zip(items, with_graphs(items, results), strict=True))
            # An empty page ends the loop, because the next request would be the same one.
            position, last = page.next_position, page.last or not page.results

    async def _call(self, name: str, request: Any) -> Any:
        stub = await self._backend.service(pb_grpc.ScoringJobServiceStub)
        return await self._backend.called(getattr(stub, name), request)


def _info(message: pb.Job) -> JobInfo:
    return JobInfo(
        id=message.id,
        request_id=message.request_id,
        state=_state_of(message),
        items=message.items,
        scored=message.scored,
        unscored=message.unscored,
        problem=message.problem,
        problem_detail=message.problem_detail,
        created_at=message.created_at,
        finished_at=message.finished_at if message.HasField("finished_at") else None,
        owner=message.owner,
        verdicts=dict(message.verdicts),
    )


def _state_of(message: pb.Job) -> str:
    """Return the state of a job in lower case, or ``unknown`` for a state of a later release."""
    known = pb.JobState.DESCRIPTOR.values_by_number.get(message.state)
    name = known.name.removeprefix("JOB_STATE_").lower() if known is not None else ""
    return name if name in _STATES else "unknown"


# Batches of one message, which then has about a megabyte.
_BATCHES = 8

# Notes on the references travel in the note of a job, because its items hold no files.
_KEY = "notes"
# Other programs may write notes too, which must not fill a report.
_MOST_NOTES, _MOST_CHARS = 20, 2_000


async def submit_run(
    backend: RemoteBackend, prepared: PreparedRun, request_id: str = ""
) -> JobInfo:
    """Submit a run as a job, and return the job.

    If submitting was interrupted, submitting the same run again continues it.

    Args:
        backend: The connection to the server.
        prepared: The run.
        request_id: Id of the request; by default a hash of the files and settings, so that the same
            run is one job.

    Raises:
        InvalidInputError: The request id created a job of other items or settings.
    """
    spec, items = prepared.spec, prepared.items
    header = await backend.header(spec)
    # Hashing reads every file, so that a thread does it.
    manifest = await asyncio.to_thread(manifest_of, prepared, header, backend.origin())
    notes = await asyncio.to_thread(input_notes, spec, items)
    # The note is all that a later fetch knows of the run's files.
    note = with_notes(manifest, notes).to_text()
    jobs = RemoteJobs(backend)
    # 128 bits are enough to tell requests apart.
    made = hashlib.sha256(note.encode()).hexdigest()[:32]
    job = await jobs.create(spec, request_id or made, note)
    if request_id:
        # A hash of the run can't be that of another one; an id of the caller's can.
        _refuse_other(await jobs.get(job.id), manifest, request_id)
    # An earlier request added all items already.
    if job.state != "open":
        return job
    # An interrupted request goes on where the server's items end.
    position = job.items
    for chunk in _chunks(islice(iter(items), position, None)):
        await jobs.add(job.id, position, chunk, more=True)
        position += len(chunk)
    return await jobs.add(job.id, position, (), more=False)


def _refuse_other(job: JobContent, manifest: Manifest, request_id: str) -> None:
    """Refuse the job of an earlier request with the same id if it is for a different run."""
    before = Manifest.of_text(job.note, f"the note of job {job.info.id}")
    if differences := before.differences(manifest):
        raise InvalidInputError(
            f"the request id {request_id!r} created job {job.info.id} of other inputs or settings "
            f"({differences}); give another request id, or none",
            reason="JOB_REQUEST_DIFFERS",
            metadata={"job": job.info.id},
        )


def _chunks(items: Iterable[Item]) -> Iterator[list[Item]]:
    each = batches_of(items)
    while chunk := [item for batch in islice(each, _BATCHES) for item in batch]:
        yield chunk


def with_notes(manifest: Manifest, notes: Sequence[str]) -> Manifest:
    """Return the manifest that is stored with a job, with the notes for its report."""
    return replace(manifest, run={**manifest.run, _KEY: list(notes)}) if notes else manifest


def without_notes(manifest: Manifest) -> tuple[Manifest, tuple[str, ...]]:
    """Return the manifest of a run at the server, and the notes of its report."""
    run = dict(manifest.run)
    kept = run.pop(_KEY, ())
    notes = kept[:_MOST_NOTES] if isinstance(kept, list) else ()
    return replace(manifest, run=run), tuple(str(note)[:_MOST_CHARS] for note in notes)


async def fetch_job(
    jobs: RemoteJobs,
    content: JobContent,
    folder: RunFolder,
    *,
    resume: bool = False,
    html: bool = False,
    watch: RunWatch | None = None,
) -> Report:
    """Write a job that is done into a folder.

    Args:
        jobs: The jobs of the server.
        content: The job.
        folder: The folder.
        resume: Whether to continue with the part of the job that the folder holds.
        html: Whether ``report.html`` is written.
        watch: Receives the progress.

    Raises:
        InvalidInputError: The job is not done, or another program created it.
    """
    info = content.info
    if info.state != "done":
        why = f": {info.problem_detail}" if info.problem_detail else ""
        raise InvalidInputError(
            f"job {info.id} is {info.state}{why}; {info.scored + info.unscored} of {info.items} "
            "items are answered, and there is no report of the rest"
        )
    manifest, notes = without_notes(_manifest(content))
    header = header_of(content.header)
    header = structs.replace(header, notes=(*notes, *header.notes))
    started = folder.start(manifest, resume=resume)
    keep_text = bool(manifest.settings.get("keep_text", True))
    options = SaveOptions(keep_text=keep_text, html=html)
    maker = PartMaker(header.metric, content.spec.group_by, options)
    source = _JobParts(jobs=jobs, job_id=info.id, maker=maker, header=header)
    # The items come from the server, with their results.
    items = ItemSource(count=info.items, make=lambda: iter(()))
    report = await runs.score_parts(
        folder, started, lambda: source, items, content.spec, header, watch
    )
    if not started.complete:
        await asyncio.to_thread(folder.finish, report, html=html)
    return report


def _manifest(content: JobContent) -> Manifest:
    if not content.note:
        raise InvalidInputError(
            f"job {content.info.id} was not created by hallujudge submit, so that its files are "
            "not known; read its results with ListJobResults"
        )
    return Manifest.of_text(content.note, f"note of job {content.info.id}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _JobParts:
    """Parts of the results of a job; see :class:`PartSource`."""

    jobs: RemoteJobs
    job_id: str
    maker: PartMaker
    header: RunHeader

    async def parts(self, items: ItemSource, first: int) -> AsyncGenerator[Part, None]:  # noqa: ARG002
        """Yield the parts from a position on, in the batches that scoring the items has."""
        waiting: list[tuple[Item, ItemResult]] = []
        async with aclosing(self.jobs.results(self.job_id, first)) as pages:
            async for page in pages:
                waiting += page
                # The last batch may continue on the next page.
                for batch in list(batches_of(item for item, _ in waiting))[:-1]:
                    yield self._part(waiting, len(batch), first)
                    first += len(batch)
        if waiting:
            yield self._part(waiting, len(waiting), first)

    def _part(self, waiting: list[tuple[Item, ItemResult]], count: int, first: int) -> Part:
        """Remove the first pairs, and return their part."""
        items, results = zip(*waiting[:count], strict=True)
        del waiting[:count]
        batch = BatchResult(items=self.header.read(items, results), results=results)
        return self.maker.make(batch, first)
