"""One scoring run into a folder: manifest, verdict cache, workers, report."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.metrics import Report

from ..spec import reference_notes
from .driver import BackendParts, score_parts
from .inputs import manifest_of
from .names import VERDICTS
from .workers import worker_count

if TYPE_CHECKING:
    from hallujudge.judge_service.engine.spec import ScoreSpec

    from ..archives import ItemSource
    from ..backends.base import RunHeader, ScoringBackend
    from ..score_run import ScoreRun
    from .driver import PartSource, RunWatch
    from .folder import RunFolder

__all__ = ["FolderScoring"]


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
            repeat = _repeat(backend)
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
            from .pool import PoolParts
            from .ray_parts import RayParts
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


def _repeat(backend: ScoringBackend) -> dict[str, Any]:
    """Return where a run is scored, and the settings of judges that are not at their defaults."""
    from ..backends.embedded import EmbeddedBackend

    if not isinstance(backend, EmbeddedBackend):
        return {"server": True}
    return {"judges": backend.judge_settings()}
