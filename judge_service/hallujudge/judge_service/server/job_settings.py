"""Jobs and their verdict cache from the settings of a server."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..jobs.service import JobService
from ..jobs.values import JobLimits, ScoredBytes
from ..settings.server import state_folder
from ..wire.jobs import WireCodec
from .workers.frames import Task
from .workers.tallies import Tallies

if TYPE_CHECKING:
    from ..engine import Engine
    from ..settings.judges import JudgeSettings
    from ..settings.server import ResolvedSettings
    from .workers.pool import WorkerPool

__all__ = ["WorkersOfJobs", "job_service", "with_verdict_cache"]

_LOG = logging.getLogger(__name__)

_OFF = "off"
_DATABASE = "jobs.sqlite"
_VERDICTS = "verdicts.sqlite"


def job_service(
    resolved: ResolvedSettings, engine: Engine, workers: WorkerPool | None = None
) -> JobService | None:
    """Return what keeps a server's jobs; None: it runs none.

    Args:
        resolved: The settings of the server and its judges.
        engine: Scores items.
        workers: Processes that score what needs no models; None: the engine does.
    """
    settings = resolved.server
    if settings.jobs_database == _OFF:
        return None
    limits = JobLimits(
        jobs_per_owner=settings.jobs_per_owner,
        max_items=settings.job_max_items,
        max_bytes=settings.job_max_bytes,
        retention_days=settings.job_retention_days,
        max_running=settings.max_running_jobs,
    )
    address = settings.jobs_database or str(state_folder(resolved.judges) / _DATABASE)
    helpers = None if workers is None else WorkersOfJobs(workers)
    return JobService(address, engine, WireCodec(), limits, workers=helpers)


class WorkersOfJobs:
    """Scores items of jobs and makes their reports in worker processes.

    Args:
        pool: The workers.
    """

    def __init__(self, pool: WorkerPool) -> None:
        self._pool = pool

    async def score(self, spec: bytes, contents: Sequence[bytes]) -> Sequence[ScoredBytes]:
        """Return the result of each item."""
        reply = await self._pool.run(Task(kind="items", parts=(spec, *contents)))
        return [ScoredBytes(*row) for row in zip(reply.reasons, reply.parts, strict=True)]

    async def report(self, spec: bytes, pages: AsyncIterator[Sequence[bytes]]) -> bytes:
        """Return the report of results."""
        tallies = Tallies(self._pool, spec)
        async for page in pages:
            [tally] = (await self._pool.run(Task(kind="tally", parts=(spec, *page)))).parts
            await tallies.add(tally)
        [report] = (await tallies.report("job_report")).parts
        return report


def with_verdict_cache(resolved: ResolvedSettings) -> JudgeSettings:
    """Return the settings of the judges, with a verdict cache if the server runs jobs.

    Items that were half done when a server stopped have no result yet. The cache holds the verdicts
    on their claims, so that no call is paid twice.
    """
    judges = resolved.judges
    called = judges.llm_url or judges.vllm or judges.fallback_model
    if judges.verdict_cache or not called or resolved.server.jobs_database == _OFF:
        return judges
    folder = state_folder(judges)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        _LOG.warning(
            "verdicts are not kept: %s can't be created (%s); set data_folder or verdict_cache",
            folder,
            err.strerror or err,
        )
        return judges
    return replace(judges, verdict_cache=str(folder / _VERDICTS))
