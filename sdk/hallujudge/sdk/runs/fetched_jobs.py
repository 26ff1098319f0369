"""Jobs of a server that are written into a folder, as scoring into it would have."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec import structs

from hallujudge.metrics import Item, ItemResult, Report

from ..archives.inputs import ItemSource
from ..backends import BatchResult
from ..backends.run_header import RunHeader, header_of
from ..errors import InvalidInputError
from .batches import batches_of
from .manifest import Manifest
from .parts import Part, PartMaker
from .score_run import SaveOptions
from .scoring import score_parts
from .server_jobs import JobContent, RemoteJobs, without_notes

if TYPE_CHECKING:
    from .folder import RunFolder
    from .scoring import RunWatch


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
    if watch is not None:
        watch.started(started)
    keep_text = bool(manifest.settings.get("keep_text", True))
    options = SaveOptions(keep_text=keep_text, html=html)
    maker = PartMaker(header.metric, content.spec.group_by, options)
    source = _JobParts(jobs=jobs, job_id=info.id, maker=maker, header=header)
    items = ItemSource(count=info.items, make=lambda: iter(()))
    report = await score_parts(folder, started, lambda: source, items, content.spec, header, watch)
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
