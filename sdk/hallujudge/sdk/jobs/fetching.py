"""Fetching of a job into a folder: the files that scoring into the folder would have written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..archives.inputs import ItemSource
from ..backends.base import BatchResult
from ..backends.headers import header_of
from ..errors import InvalidInputError
from ..runs.batching import batches
from ..runs.driver import score_parts
from ..runs.manifest import Manifest
from ..runs.parts import Part, PartMaker
from .notes import without_notes

if TYPE_CHECKING:
    from hallujudge.metrics import Item, ItemResult, Report

    from ..runs.driver import RunWatch
    from ..runs.folder import RunFolder
    from .remote import JobContent, RemoteJobs

__all__ = ["fetch_job"]


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
        resume: Whether to go on with what the folder holds of the job.
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
    manifest, told = without_notes(_manifest(content))
    header = header_of(content.header)
    header = replace(header, notes=(*told, *header.notes))
    started = folder.start(manifest, resume=resume)
    if watch is not None:
        watch.started(started)
    keep_text = bool(manifest.settings.get("keep_text", True))
    maker = PartMaker.of(header, content.spec.group_by, keep_text=keep_text, html=html)
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
        """Yield the parts from a position on, in the batches of a run of these items."""
        waiting: list[tuple[Item, ItemResult]] = []
        async with aclosing(self.jobs.results(self.job_id, first)) as pages:
            async for page in pages:
                waiting += page
                # The last batch may go on in the next page.
                for batch in list(batches(item for item, _ in waiting))[:-1]:
                    yield self._part(waiting, len(batch), first)
                    first += len(batch)
        if waiting:
            yield self._part(waiting, len(waiting), first)

    def _part(self, waiting: list[tuple[Item, ItemResult]], count: int, first: int) -> Part:
        """Return the part of the first pairs, which wait no longer."""
        items, results = zip(*waiting[:count], strict=True)
        del waiting[:count]
        return self.maker.make(BatchResult(items=items, results=results), first)
