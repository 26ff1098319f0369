"""How many processes score a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.judge_service.threads import usable_cores

from ..errors import InvalidInputError

if TYPE_CHECKING:
    from hallujudge.judge_service.engine.spec import ScoreSpec

    from ..archives import ItemSource
    from ..score_run import ScoreRun

__all__ = ["ENGINES", "early_count", "worker_count"]

ENGINES = ("local", "ray")
"""Where processes run."""

_LARGE = 20_000
_MOST_WORKERS = 1_024
"""Items from which on the start of processes (about a second each) pays off."""

_LARGE_BYTES = 16 << 20
"""Size of a file that has as many items in nearly every layout."""


def worker_count(run: ScoreRun, spec: ScoreSpec, items: ItemSource, *, local: bool) -> int:
    """Return how many processes score a run; on Ray, 0 for one on each processor.

    Args:
        run: What is scored and how.
        spec: The same, as the engine has it.
        items: The items.
        local: Whether this machine scores, not a server.

    Raises:
        InvalidInputError: The run can't be spread over processes.
    """
    _check_number(run.workers)
    obstacle = _obstacle(run, spec, local=local)
    if run.engine not in ENGINES:
        raise InvalidInputError(f"engine is {run.engine!r}; choose from {', '.join(ENGINES)}")
    if run.engine != ENGINES[0]:
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
    if run.workers or obstacle or len(items) < _LARGE or metric_entry(run.metric).judges:
        return max(1, run.workers)
    return usable_cores()


def _check_number(workers: int) -> None:
    # All processes start at once, whatever there is to do.
    if not 0 <= workers <= _MOST_WORKERS:
        raise InvalidInputError(
            f"workers is {workers}; give 0 (automatic), or a number up to {_MOST_WORKERS:,}"
        )


def early_count(run: ScoreRun, spec: ScoreSpec, *, local: bool) -> int:
    """Return how many processes may start before the archive is read; 1: that is not known yet.

    Args:
        run: What is scored and how.
        spec: The same, as the engine has it.
        local: Whether this machine scores, not a server.
    """
    _check_number(run.workers)
    if run.engine != ENGINES[0] or _obstacle(run, spec, local=local) or run.resume:
        return 1
    if run.workers:
        return max(1, run.workers)
    path = Path(run.responses) if isinstance(run.responses, (str, Path)) else None
    surely_large = path is not None and path.is_file() and path.stat().st_size >= _LARGE_BYTES
    return usable_cores() if surely_large and not metric_entry(run.metric).judges else 1


def _obstacle(run: ScoreRun, spec: ScoreSpec, *, local: bool) -> str:
    """Return why a run can't be spread over processes; empty if it can."""
    if not local:
        return "the server scores, with its own processes"
    if metric_entry(spec.metric).calls_models(spec) and run.engine == ENGINES[0]:
        return "language models are called concurrently by one process, which keeps the budget"
    if run.on_batch is not None:
        return "on_batch needs the results in this process"
    return ""
