"""Submitting a run as a job."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from ..runs.batching import batches
from ..runs.inputs import manifest_of
from ..spec import reference_notes
from .notes import with_notes
from .remote import RemoteJobs

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
    """
    header = await backend.header(spec)
    # Hashing reads every file; other work on the event loop goes on.
    manifest = await asyncio.to_thread(manifest_of, run, spec, items, header, {"server": True})
    told = await asyncio.to_thread(reference_notes, spec, items)
    note = with_notes(manifest, told).to_text()
    jobs = RemoteJobs(backend)
    request_id = request_id or hashlib.sha256(note.encode()).hexdigest()[:32]
    job = await jobs.create(spec, request_id, note)
    if job.state != "open":
        return job
    position = job.items
    for chunk in _chunks(islice(iter(items), position, None)):
        await jobs.add(job.id, position, chunk, more=True)
        position += len(chunk)
    return await jobs.add(job.id, position, (), more=False)


def _chunks(items: Iterable[Item]) -> Iterator[list[Item]]:
    each = batches(items)
    while chunk := [item for batch in islice(each, _BATCHES) for item in batch]:
        yield chunk
