"""Scoring into a folder: parts come from a backend in input order and go to the journal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.metrics import Report, Tally

from ..backends.base import BatchResult
from ..errors import InternalError
from ..spec_parts import reference_notes
from .manifest import VERDICTS
from .parts import Part, PartMaker, batches_async
from .run_inputs import manifest_of
from .worker import worker_count

if TYPE_CHECKING:
    from hallujudge.judge_service.engine.spec import ScoreSpec
    from hallujudge.judge_service.engine.streams import RunProgress

    from ..archives import ItemSource
    from ..backends.base import RunHeader, ScoringBackend
    from ..progress_bar import Progress
    from ..score_run import ScoreRun
    from .folder import RunFolder, Started
    from .parts import Entry


OnBatch: TypeAlias = "Callable[[BatchResult], None]"
OnProgress: TypeAlias = "Callable[[RunProgress], None]"


class PartSource(Protocol):
    """Scores items and gives the parts in input order."""

    def parts(self, items: ItemSource, first: int) -> AsyncGenerator[Part, None]:
        """Yield the parts of items.

        Args:
            items: All items of the run.
            first: Position of the first one that is still to be scored.
        """
        ...


class RunWatch(Protocol):
    """Receives the progress of a run, for progress bars and notes."""

    def started(self, started: Started) -> None:
        """Learn what the folder holds already."""
        ...

    def scored(self, part: Part | Entry) -> None:
        """Learn of a part, the kept ones of a resumed run first."""
        ...

    def waits(self, progress: RunProgress) -> None:
        """Learn, every few seconds without a part, what is waited for."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendParts:
    """Parts of what a backend scores, in this process or at a server."""

    backend: ScoringBackend
    """The backend."""
    spec: ScoreSpec
    """How items are scored."""
    header: RunHeader
    """What is known of the run."""
    keep_text: bool
    """Whether responses are kept."""
    html: bool = False
    """Whether an HTML page is made."""
    on_batch: OnBatch | None = None
    """Callback for each batch of results."""
    on_progress: OnProgress | None = None
    """Callback for what is waited for."""

    async def parts(self, items: ItemSource, first: int) -> AsyncGenerator[Part, None]:
        """Yield the parts of items; see :class:`PartSource`."""
        maker = PartMaker.of(
            self.header, self.spec.group_by, keep_text=self.keep_text, html=self.html
        )
        stream = self.backend.score_stream(
            self.spec, batches_async(items.start_at(first)), report=False
        )
        async with aclosing(stream) as results:
            async for done in results:
                assert not isinstance(done, Report), "no report was asked for"
                if not isinstance(done, BatchResult):
                    if self.on_progress is not None:
                        self.on_progress(done)
                    continue
                if self.on_batch is not None:
                    self.on_batch(done)
                yield maker.make(done, first)
                first += len(done.items)


async def score_parts(
    folder: RunFolder,
    started: Started,
    source: PartSource,
    items: ItemSource,
    spec: ScoreSpec,
    header: RunHeader,
    watch: RunWatch | None = None,
) -> Report:
    """Score what a folder does not hold yet, and return the report over everything.

    Args:
        folder: Where the parts go.
        started: What the folder holds already.
        source: Scores items.
        items: All items of the run.
        spec: How they are scored.
        header: What is known of the run.
        watch: Receives the progress of the run.
    """
    total = Tally(header.metric, spec.group_by)
    for entry in started.kept.entries():
        total.merge_bytes(entry.tally)
        if watch is not None:
            watch.scored(entry)
    if folder.written < len(items):
        async with aclosing(source.parts(items, folder.written)) as parts:
            async for part in parts:
                folder.add(part)
                total.merge_bytes(part.tally)
                if watch is not None:
                    watch.scored(part)
    if folder.written != len(items):
        raise InternalError(f"{folder.written} of {len(items)} items were scored")
    # Intervals of many items take seconds; a thread keeps the event loop free.
    return await asyncio.to_thread(header.report, total, spec.interval)


class ProgressWatch:
    """Counts what a run has scored.

    Args:
        progress: Counts it.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def started(self, started: Started) -> None:
        """Learn what the folder holds already; its parts follow."""

    def scored(self, part: Part | Entry) -> None:
        """Count a part."""
        count = self._progress.scored if isinstance(part, Part) else self._progress.kept
        count(part.items, part.unscored.items.counts.total())

    def waits(self, progress: RunProgress) -> None:
        """Show what is waited for."""
        self._progress.waits(progress)


class FolderScoring:
    """A run that is scored into a folder.

    Args:
        backend: Scores, in this process or at a server.
        run: What is scored and how.
        spec: The same, as the engine has it.
        items: The items.
    """

    def __init__(
        self, backend: ScoringBackend, run: ScoreRun, spec: ScoreSpec, items: ItemSource
    ) -> None:
        self._backend = backend
        self._run = run
        self._spec = spec
        self._items = items

    async def into(self, folder: RunFolder, watch: RunWatch | None = None) -> Report:
        """Score into a folder, or go on with what it holds, and complete it.

        Args:
            folder: The folder.
            watch: Receives the progress of the run.
        """
        run, spec, items = self._run, self._spec, self._items
        async with self._keeping_verdicts(folder) as backend:
            header = await backend.header(spec)
            told = await asyncio.to_thread(reference_notes, spec, items)
            header = replace(header, notes=(*told, *header.notes))
            # Hashing reads every file; other work on the event loop goes on.
            repeat = _repetition_settings(backend)
            manifest = await asyncio.to_thread(manifest_of, run, spec, items, header, repeat)
            marks = items.slices.marks.to_bytes() if items.slices is not None else b""
            started = folder.start(manifest, resume=run.resume, marks=marks)
            if watch is not None:
                watch.started(started)
            source = self._source(backend, header, watch)
            report = await score_parts(folder, started, source, items, spec, header, watch)
        if not started.complete:
            await asyncio.to_thread(folder.finish, report, html=run.html)
        elif run.html:
            await asyncio.to_thread(folder.write_page, report)
        return report

    def _source(
        self, backend: ScoringBackend, header: RunHeader, watch: RunWatch | None
    ) -> PartSource:
        from ..backends.embedded import EmbeddedBackend

        local = isinstance(backend, EmbeddedBackend)
        workers = worker_count(self._run, self._spec, self._items, local=local)
        on_ray = self._run.engine == "ray"
        if (workers > 1 or on_ray) and isinstance(backend, EmbeddedBackend):
            from .processes import PoolParts
            from .ray_workers import RayParts
            from .worker import WorkerSettings

            settings = WorkerSettings(
                spec=self._spec,
                judges=backend.settings,
                keep_text=self._run.keep_text,
                html=self._run.html,
            )
            if on_ray:
                return RayParts(settings, workers, self._run.ray_address)
            return PoolParts.of(settings, workers)
        return BackendParts(
            backend=backend,
            spec=self._spec,
            header=header,
            keep_text=self._run.keep_text,
            html=self._run.html,
            on_batch=self._run.on_batch,
            on_progress=watch.waits if watch is not None else None,
        )

    @asynccontextmanager
    async def _keeping_verdicts(self, folder: RunFolder) -> AsyncIterator[ScoringBackend]:
        """Give a backend that keeps every verdict that was paid for, also of unfinished batches."""
        from ..backends.embedded import EmbeddedBackend

        made = None
        called = metric_entry(self._spec.metric).calls_models(self._spec)
        if called and isinstance(self._backend, EmbeddedBackend):
            made = self._backend.with_cache(folder.folder / VERDICTS)
        if made is None:
            yield self._backend
            return
        try:
            yield made
        finally:
            await made.close()


def _repetition_settings(backend: ScoringBackend) -> dict[str, Any]:
    """Return where a run is scored, and the settings of judges that are not at their defaults."""
    from ..backends.embedded import EmbeddedBackend

    if not isinstance(backend, EmbeddedBackend):
        return {"server": True}
    return {"judges": backend.judge_settings()}
