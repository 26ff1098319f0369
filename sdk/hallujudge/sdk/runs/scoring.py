"""Scoring into a folder: parts come in input order, and go to the journal.

They come from a backend, or from processes over which the run is spread.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec import structs

from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.judge_service.entry_points import guarded, loaded, names_beside, registered_once
from hallujudge.judge_service.llm.cache_file import kept_replies
from hallujudge.judge_service.stopping import begun, cancel_all
from hallujudge.judge_service.threads import can_fork, usable_cores
from hallujudge.metrics import Report, Tally
from hallujudge.metrics.errors import choose_from

from .. import runs
from ..backends import BatchResult
from ..errors import InternalError, InvalidInputError
from .folder import RunFolder
from .folder_guards import tidied
from .manifest import PAGE, VERDICTS
from .parts import Part, PartMaker, PartSource, batch_size, batches_async
from .progress_bar import Progress, shown_progress, shown_reading
from .run_inputs import PreparedRun, manifest_of
from .run_report import RunItems, RunReport
from .score_run import ScoreRun, input_notes

if TYPE_CHECKING:
    from hallujudge.judge_service.engine.spec import RunHeader, ScoreSpec
    from hallujudge.judge_service.engine.streams import RunProgress
    from hallujudge.metrics.framework.report import JudgeShare

    from ..archives import ItemSource
    from ..backends import ScoringBackend
    from .folder import Started
    from .parts import Entry
    from .processes import PoolParts
    from .worker import WorkerSettings


_T = TypeVar("_T")
_LOOK_SECONDS = 1.0

_LOCAL = "local"
"""The engine of this machine's processes."""
_ENGINES = "hallujudge.engines"
"""The entry points of other engines: each names what makes a :class:`PartSource`."""

# Starting a process takes about a second, in which one process scores about 15,000 captions.
_LARGE_RUN = 20_000
# A file of this size has that many items in nearly every layout.
_LARGE_BYTES = 16 << 20
# A typing mistake must not start so many that the machine stops.
_MOST_WORKERS = 1_024


class RunWatch(Protocol):
    """Receives the progress of a run, for progress bars and notes."""

    def started(self, started: Started) -> None:
        """Learn what the folder holds already."""

    def scored(self, part: Part | Entry) -> None:
        """Learn of a part, the kept ones of a resumed run first."""

    def judged(self, shares: tuple[JudgeShare, ...], *, kept: bool) -> None:
        """Learn what judges gave so far: to the kept parts, and then after each part."""

    def waits(self, progress: RunProgress) -> None:
        """Learn, every few seconds without a part, what is waited for."""


async def score_run_into_folder(backend: ScoringBackend, run: ScoreRun) -> RunReport:
    """Read a run's inputs and score it into its folder; the report holds no items.

    Args:
        backend: Scores, in this process or at a server.
        run: The run, which names a folder.
    """
    assert run.folder is not None, "the caller has a folder"
    with shown_reading() if run.progress else nullcontext():
        prepared = PreparedRun.of(run)
    total = len(prepared.items)
    with shown_progress(total) if run.progress else nullcontext(Progress(total)) as progress:
        place = Path(run.folder)
        with (
            tidied(place),
            RunFolder(place, inputs=run.paths(), overwrite=run.overwrite) as folder,
        ):
            report = await score_into_folder(backend, prepared, folder, ProgressWatch(progress))
    return RunReport.of(report, RunItems(), run.paths())


async def score_into_folder(
    backend: ScoringBackend,
    prepared: PreparedRun,
    folder: RunFolder,
    watch: RunWatch | None = None,
) -> Report:
    """Score a run into a folder, or go on with what the folder holds, and complete it.

    Args:
        backend: Scores, in this process or at a server.
        prepared: The run.
        folder: The folder.
        watch: Receives the progress of the run.
    """
    run, spec, items = prepared.run, prepared.spec, prepared.items
    async with _keeping_verdicts(backend, spec, folder) as keeping:
        # A run without calls to models may share the folder of one that made some.
        used = keeping is not backend
        paid = await asyncio.to_thread(kept_replies, folder.folder / VERDICTS) if used else 0
        header = await keeping.header(spec)
        notes = await asyncio.to_thread(input_notes, spec, items)
        header = structs.replace(header, notes=(*notes, *header.notes))
        # Hashing reads every file; other work on the event loop goes on.
        manifest = await asyncio.to_thread(manifest_of, prepared, header, keeping.origin())
        marks = items.slices.marks.to_bytes() if items.slices is not None else b""
        started = folder.start(manifest, resume=run.resume, marks=marks, completes=True)
        if paid and not started.complete:
            note = f"{VERDICTS} holds {paid:,} replies that were paid for; they are used again"
            started = structs.replace(started, notes=(*started.notes, note))
        watch = watch or ProgressWatch(Progress(len(items)))
        if started.earlier is not None:
            # Early workers end with the first items that they score, and there may be more.
            prepared = replace(prepared, workers=None)
        own = BackendParts(backend=keeping, prepared=prepared, header=header, watch=watch)

        def source() -> PartSource:
            """Return worker processes or Ray, where these score; else the backend itself."""
            return spread_parts(prepared, keeping.worker_settings) or own

        report = await score_parts(folder, started, source, items, spec, header, watch)
    if not started.complete:
        await asyncio.to_thread(folder.finish, report, html=run.html)
    elif run.html and not (folder.folder / PAGE).exists():
        await asyncio.to_thread(folder.write_page, report)
    return report


@asynccontextmanager
async def _keeping_verdicts(
    backend: ScoringBackend, spec: ScoreSpec, folder: RunFolder
) -> AsyncIterator[ScoringBackend]:
    """Yield a backend that keeps every verdict that was paid for, even of unfinished batches."""
    if not metric_entry(spec.metric).calls_models(spec):
        yield backend
        return
    caching = backend.with_cache(folder.folder / VERDICTS)
    try:
        with runs.KeptReplies().guard():
            # Of a server there is none: it keeps verdicts itself.
            yield caching or backend
    finally:
        if caching is not None:
            await caching.close()


async def score_parts(
    folder: RunFolder,
    started: Started,
    source: Callable[[], PartSource],
    items: ItemSource,
    spec: ScoreSpec,
    header: RunHeader,
    watch: RunWatch | None = None,
) -> Report:
    """Score what a folder does not hold yet, and return the report over everything.

    Args:
        folder: Where the parts go.
        started: What the folder holds already.
        source: Makes what scores items.
        items: All items of the run.
        spec: How they are scored.
        header: What is known of the run.
        watch: Receives the progress of the run.
    """
    watch = watch or ProgressWatch(Progress(len(items)))
    watch.started(started)
    # From the journal, so that a resumed run reads none of the lines that it wrote.
    total = Tally(header.metric, spec.group_by)
    for entry in started.kept.entries():
        total.merge_bytes(entry.tally)
        watch.scored(entry)
    if not started.complete:
        watch.judged(total.judging, kept=True)
    if folder.written < len(items):
        missing = _missing_parts(started, source, items, folder.written)
        async with aclosing(missing) as parts:
            async for part, made in _while_there(parts, folder):
                folder.add(part)
                total.merge_bytes(part.tally)
                watch.scored(made or part)
                watch.judged(total.judging, kept=False)
    # A source that ends early must not look like a complete run.
    if folder.written != len(items):
        raise InternalError(f"{folder.written} of {len(items)} items were scored")
    # Intervals of many items take seconds; a thread keeps the event loop free.
    return await asyncio.to_thread(header.report, total, spec.interval)


async def _missing_parts(
    started: Started, source: Callable[[], PartSource], items: ItemSource, first: int
) -> AsyncGenerator[tuple[Part, Entry | None], None]:
    """Yield the parts from an item on; with its entry, a part that an earlier run made."""
    whole: Iterable[tuple[Entry, Part] | range] = [range(first, len(items))]
    if started.earlier is not None:
        whole = started.earlier.pieces(first)
    for piece in whole:
        if not isinstance(piece, range):
            entry, kept = piece
            yield kept, entry
            continue
        async with aclosing(source().parts(_up_to(items, piece.stop), piece.start)) as parts:
            async for scored in parts:
                yield scored, None


def _up_to(items: ItemSource, end: int) -> ItemSource:
    """Return the items before a position."""
    if end == len(items):
        return items
    # Slices lead workers to the end of the archive, past this piece.
    return replace(items, count=end, make=lambda: islice(items.make(), end), slices=None)


async def _next(parts: AsyncGenerator[_T, None]) -> _T | None:
    return await anext(parts, None)


async def _while_there(
    parts: AsyncGenerator[_T, None], folder: RunFolder
) -> AsyncGenerator[_T, None]:
    """Yield parts, and look at the folder also while a part takes long: its calls are paid for.

    Raises:
        OutputError: The folder was deleted or moved.
    """
    while True:
        part = begun(_next(parts))
        try:
            while not (await asyncio.wait({part}, timeout=_LOOK_SECONDS))[0]:
                folder.check()
            if (done := part.result()) is None:
                return
        finally:
            # A caller that stops must not leave the step running.
            await cancel_all(part)
        yield done


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendParts:
    """Parts of what a backend scores, in this process or at a server."""

    backend: ScoringBackend
    prepared: PreparedRun
    """The run."""
    header: RunHeader
    watch: RunWatch
    """Receives the progress of the run."""

    async def parts(self, items: ItemSource, first: int) -> AsyncGenerator[Part, None]:
        """Yield the parts of items; see :class:`PartSource`."""
        run, spec = self.prepared.run, self.prepared.spec
        maker = PartMaker(self.header.metric, spec.group_by, run.save_options)
        size = batch_size(spec, local=self.backend.worker_settings is not None)
        batches = batches_async(items.start_at(first), size)
        stream = self.backend.score_stream(spec, self.header, batches)
        async with aclosing(stream) as results:
            async for done in results:
                if not isinstance(done, BatchResult):
                    self.watch.waits(done)
                    continue
                if run.on_batch is not None:
                    run.on_batch(done)
                yield maker.make(done, first)
                first += len(done.items)


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

    def judged(self, shares: tuple[JudgeShare, ...], *, kept: bool) -> None:
        """Show what judges gave."""
        self._progress.judged(shares, kept=kept)

    def waits(self, progress: RunProgress) -> None:
        """Show what is waited for."""
        self._progress.waits(progress)


# Processes ----------------------------------------------------------------------------------------


def spread_parts(prepared: PreparedRun, judges: Mapping[str, object] | None) -> PartSource | None:
    """Return what scores a run with several processes; None if this process or a server does.

    Args:
        prepared: The run.
        judges: Settings of the judges; None if a server scores.

    Raises:
        InvalidInputError: The run can't be spread over processes.
    """
    run = prepared.run
    workers = worker_count(prepared, local=judges is not None)
    if judges is not None and run.engine != _LOCAL:
        settings = runs.WorkerSettings(spec=prepared.spec, judges=judges, save=run.save_options)
        return _parts_of_engine(run, settings, workers)
    if judges is None or workers <= 1:
        return None
    return prepared.workers or _pool(run, prepared.spec, judges, workers)


def _parts_of_engine(run: ScoreRun, settings: WorkerSettings, workers: int) -> PartSource:
    entry = registered_once(_ENGINES, run.engine, "engine")
    engine: Any = loaded(entry, "engine")
    with guarded(entry, "engine"):
        parts: PartSource = engine(settings, workers, run.ray_address)
    return parts


@contextmanager
def early_workers(
    run: ScoreRun, spec: ScoreSpec, judges: Mapping[str, object], *, local: bool
) -> Iterator[PoolParts | None]:
    """Start the workers of a run before its archive is read, if it is certainly large enough.

    They check slices of the archive while this process reads it.

    Args:
        run: What is scored and how.
        spec: How items are scored.
        judges: Settings of the judges.
        local: Whether this machine scores, not a server.

    Yields:
        The workers, or None if the run may be too small.
    """
    count = early_count(run, spec, local=local)
    if count < 2:
        yield None
        return
    pool = _pool(run, spec, judges, count)
    pool.start()
    try:
        yield pool
    finally:
        pool.close()


def _pool(run: ScoreRun, spec: ScoreSpec, judges: Mapping[str, object], workers: int) -> PoolParts:
    return runs.PoolParts(
        runs.WorkerSettings(spec=spec, judges=judges, save=run.save_options), workers
    )


def worker_count(prepared: PreparedRun, *, local: bool) -> int:
    """Return how many processes score a run; on Ray, 0 for one on each processor.

    Args:
        prepared: The run.
        local: Whether this machine scores, not a server.

    Raises:
        InvalidInputError: The run can't be spread over processes.
    """
    run = prepared.run
    _check_worker_number(run.workers)
    obstacle = _spreading_obstacle(run, prepared.spec, local=local)
    if run.engine != _LOCAL:
        if run.engine not in (others := names_beside(_ENGINES, frozenset({_LOCAL}), "engine")):
            known = choose_from(run.engine, (_LOCAL, *others))
            raise InvalidInputError(f"engine is {run.engine!r}; {known}")
        if obstacle:
            raise InvalidInputError(f"engine is {run.engine}: {obstacle}; leave it out")
        return run.workers
    if run.ray_address:
        raise InvalidInputError(
            f"ray_address is {run.ray_address!r:.80}, but the engine is {run.engine}; set "
            "ScoreRun(engine=ray), or leave it out"
        )
    if run.workers > 1 and obstacle:
        raise InvalidInputError(f"workers is {run.workers}: {obstacle}; leave it out")
    if run.workers:
        return run.workers
    large = len(prepared.items) >= _LARGE_RUN
    return usable_cores() if large and not obstacle and not _loads_models(run) else 1


def _check_worker_number(workers: int) -> None:
    # All processes start at once, even if there are fewer groups than processes.
    if not 0 <= workers <= _MOST_WORKERS:
        raise InvalidInputError(
            f"workers is {workers}; give 0 (automatic), or a number up to {_MOST_WORKERS:,}"
        )


def early_count(run: ScoreRun, spec: ScoreSpec, *, local: bool) -> int:
    """Return how many processes may start before the archive is read, or 1 if that is unknown.

    Args:
        run: What is scored and how.
        spec: How items are scored.
        local: Whether this machine scores, not a server.
    """
    _check_worker_number(run.workers)
    # Early workers check the archive, which a resumed run need not do again.
    if run.engine != _LOCAL or _spreading_obstacle(run, spec, local=local) or run.resume:
        return 1
    if run.workers:
        return run.workers
    path = Path(run.responses) if isinstance(run.responses, (str, Path)) else None
    surely_large = path is not None and path.is_file() and path.stat().st_size >= _LARGE_BYTES
    return usable_cores() if surely_large and not _loads_models(run) else 1


def _loads_models(run: ScoreRun) -> bool:
    # Each process would load the models again.
    return bool(metric_entry(run.metric).judges)


def _spreading_obstacle(run: ScoreRun, spec: ScoreSpec, *, local: bool) -> str:
    """Return why a run can't be spread over processes; empty if it can."""
    if not local:
        return "the server scores, with its own processes"
    if metric_entry(spec.metric).calls_models(spec) and run.engine == _LOCAL:
        return "language models are called concurrently by one process, which keeps the budget"
    if run.on_batch is not None:
        return "on_batch needs the results in this process"
    if run.engine == _LOCAL and not can_fork():
        return "this system can't fork processes"
    return ""
