"""Spreading a run over processes: whether it can be, over how many, and what starts them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.judge_service.entry_points import guarded, loaded, names_beside, registered_once
from hallujudge.judge_service.threads import can_fork, usable_cores
from hallujudge.metrics.errors import choose_from

from .. import runs
from ..errors import InvalidInputError

if TYPE_CHECKING:
    from hallujudge.judge_service.engine.spec import ScoreSpec

    from .parts import PartSource
    from .processes import PoolParts
    from .run_inputs import PreparedRun
    from .score_run import ScoreRun
    from .worker import WorkerSettings

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
