"""Submitting a run as a job."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from ..errors import InvalidInputError
from ..runs.batching import batches
from ..runs.inputs import manifest_of
from ..runs.manifest import Manifest
from ..spec import reference_notes
from .notes import with_notes
from .remote import JobContent, RemoteJobs

if TYPE_CHECKING:
    from hallujudge.judge_service.engine.spec import ScoreSpec
    from hallujudge.metrics import Item

    from ..archives import ItemSource
    from ..backends.remote import RemoteBackend
    from ..score_run import ScoreRun
    from .values import JobInfo

__all__ = ["submit_run"]

# Messages of about a megabyte, and far fewer of them than batches.
_BATCHES = 8


async def submit_run(
    backend: RemoteBackend,
    run: ScoreRun,
    spec: ScoreSpec,
    items: ItemSource,
    request_id: str = "",
) -> JobInfo:
    """Submit a run as a job, and return the job.

    Submitting that was stopped goes on where it was when the same run is submitted again.

    Args:
        backend: Has the connection.
        run: What is scored and how.
        spec: The same, as the engine has it.
        items: The items.
        request_id: Id of the request; empty: a hash of the files and settings, so that the same
            run is one job.

    Raises:
        InvalidInputError: The request id created a job of other items or settings.
    """
    header = await backend.header(spec)
    # Hashing reads every file; other work on the event loop goes on.
    manifest = await asyncio.to_thread(manifest_of, run, spec, items, header, {"server": True})
    told = await asyncio.to_thread(reference_notes, spec, items)
    note = with_notes(manifest, told).to_text()
    jobs = RemoteJobs(backend)
    made = hashlib.sha256(note.encode()).hexdigest()[:32]
    job = await jobs.create(spec, request_id or made, note)
    if request_id:
        _refuse_other(await jobs.get(job.id), manifest, request_id)
    if job.state != "open":
        return job
    position = job.items
    for chunk in _chunks(islice(iter(items), position, None)):
        await jobs.add(job.id, position, chunk, more=True)
        position += len(chunk)
    return await jobs.add(job.id, position, (), more=False)


def _refuse_other(job: JobContent, manifest: Manifest, request_id: str) -> None:
    """Refuse a job that the request id created before for another run."""
    before = Manifest.of_text(job.note, f"the note of job {job.info.id}")
    if differences := before.differences(manifest):
        raise InvalidInputError(
            f"the request id {request_id!r} created job {job.info.id} of other inputs or settings "
            f"({differences}); give another request id, or none",
            reason="JOB_REQUEST_DIFFERS",
            metadata={"job": job.info.id},
        )


def _chunks(items: Iterable[Item]) -> Iterator[list[Item]]:
    each = batches(items)
    while chunk := [item for batch in islice(each, _BATCHES) for item in batch]:
        yield chunk
