"""The jobs of a server: create, list, read, cancel, and wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hallujudge.judge.v1 import jobs_pb2 as pb
from hallujudge.judge.v1 import jobs_pb2_grpc as pb_grpc
from hallujudge.judge_service.wire import convert as _convert
from hallujudge.judge_service.wire.job_messages import state_of
from hallujudge.judge_service.wire.tri_he import with_graphs
from hallujudge.metrics import Item, ItemResult, Report

from ..backends.remote import RemoteBackend
from ..errors import HallujudgeError
from . import JobInfo

if TYPE_CHECKING:
    from hallujudge.judge_service.engine.spec import ScoreSpec

    from . import OnJobChange

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

    async def all(self) -> list[JobInfo]:
        """Return the caller's jobs, the newest first."""
        jobs: list[JobInfo] = []
        token = ""
        while True:
            page = await self._call("ListJobs", pb.ListJobsRequest(page_token=token))
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
        state=state_of(message),
        items=message.items,
        scored=message.scored,
        unscored=message.unscored,
        problem=message.problem,
        problem_detail=message.problem_detail,
        created_at=message.created_at,
        finished_at=message.finished_at if message.HasField("finished_at") else None,
    )
