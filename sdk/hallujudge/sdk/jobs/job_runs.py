"""Runs as jobs: submit a run, and fetch the results into a folder."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from ..archives.inputs import ItemSource
from ..backends.base import BatchResult, header_of
from ..errors import InvalidInputError
from ..runs.manifest import Manifest
from ..runs.parts import Part, PartMaker, batches
from ..runs.run_inputs import PreparedRun, manifest_of
from ..runs.scoring import score_parts
from ..score_run import SaveOptions
from ..spec_parts import input_notes
from .remote_jobs import JobContent, RemoteJobs

if TYPE_CHECKING:
    from hallujudge.metrics import Item, ItemResult, Report

    from ..backends.remote import RemoteBackend
    from ..runs.folder import RunFolder
    from ..runs.scoring import RunWatch
    from . import JobInfo


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
    note = with_notes(manifest, notes).to_text()
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
    each = batches(items)
    while chunk := [item for batch in islice(each, _BATCHES) for item in batch]:
        yield chunk


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
    header = replace(header, notes=(*notes, *header.notes))
    started = folder.start(manifest, resume=resume)
    if watch is not None:
        watch.started(started)
    keep_text = bool(manifest.settings.get("keep_text", True))
    options = SaveOptions(keep_text=keep_text, html=html)
    maker = PartMaker(header.metric, content.spec.group_by, options)
    source = _JobParts(jobs=jobs, job_id=info.id, maker=maker)
    items = ItemSource(count=info.items, make=lambda: iter(()))
    report = await score_parts(folder, started, source, items, content.spec, header, watch)
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

    async def parts(self, items: ItemSource, first: int) -> AsyncGenerator[Part, None]:  # noqa: ARG002
        """Yield the parts from a position on, in the batches that scoring the items has."""
        waiting: list[tuple[Item, ItemResult]] = []
        async with aclosing(self.jobs.results(self.job_id, first)) as pages:
            async for page in pages:
                waiting += page
                # The last batch may continue on the next page.
                for batch in list(batches(item for item, _ in waiting))[:-1]:
                    yield self._part(waiting, len(batch), first)
                    first += len(batch)
        if waiting:
            yield self._part(waiting, len(waiting), first)

    def _part(self, waiting: list[tuple[Item, ItemResult]], count: int, first: int) -> Part:
        """Remove the first pairs, and return their part."""
        items, results = zip(*waiting[:count], strict=True)
        del waiting[:count]
        return self.maker.make(BatchResult(items=items, results=results), first)


def with_notes(manifest: Manifest, notes: Sequence[str]) -> Manifest:
    """Return the manifest that is stored with a job, with the notes for its report."""
    return replace(manifest, run={**manifest.run, _KEY: list(notes)}) if notes else manifest


def without_notes(manifest: Manifest) -> tuple[Manifest, tuple[str, ...]]:
    """Return the manifest of a run at the server, and the notes of its report."""
    run = dict(manifest.run)
    kept = run.pop(_KEY, ())
    notes = kept[:_MOST_NOTES] if isinstance(kept, list) else ()
    return replace(manifest, run=run), tuple(str(note)[:_MOST_CHARS] for note in notes)
