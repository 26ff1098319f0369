"""Parts of a run, made by a pool of processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from hallujudge.judge_service.engine.streams import ordered_map

from ..archives.inputs import spread_by
from ..errors import InternalError
from .groups import ATTEMPTS, Group, died, groups_of
from .parts import Part
from .processes import DiedError, Processes, Work
from .worker import SliceCheck, WorkerSettings, do, prepare
from .workers import early_count

if TYPE_CHECKING:
    from hallujudge.judge_service.engine.spec import ScoreSpec

    from ..archives import ItemSource
    from ..archives.inputs import CheckedSlice, SliceReader
    from ..archives.json_lines import Span
    from ..score_run import ScoreRun

__all__ = ["PoolParts", "early_workers"]

_GROUPS_AHEAD = 3

_early: ContextVar[PoolParts | None] = ContextVar("early", default=None)


@contextmanager
def early_workers(
    run: ScoreRun, spec: ScoreSpec, judges: Mapping[str, object], *, local: bool
) -> Iterator[None]:
    """Start the workers of a run before its archive is read, if it is surely large enough.

    Args:
        run: What is scored and how.
        spec: The same, as the engine has it.
        judges: Settings of the judges.
        local: Whether this machine scores, not a server.
    """
    count = early_count(run, spec, local=local)
    if count < 2:
        yield
        return
    settings = WorkerSettings(spec=spec, judges=judges, keep_text=run.keep_text, html=run.html)
    pool = PoolParts(settings, count)
    pool.start()
    token = _early.set(pool)
    try:
        with spread_by(pool):
            yield
    finally:
        _early.reset(token)
        pool.close()


class PoolParts:
    """Parts that worker processes make.

    Args:
        settings: What the workers need to know.
        workers: How many there are.
    """

    def __init__(self, settings: WorkerSettings, workers: int) -> None:
        self._settings = settings
        self._ahead = _GROUPS_AHEAD * workers
        self._starting: Future[None] | None = None
        self._processes: Processes[WorkerSettings, Any, Any] = Processes(
            Work(prepare, settings, do),
            count=workers,
            attempts=ATTEMPTS,
            # The second is what the command's own script imports; every worker runs it again.
            preload=(f"{__package__}.preloaded", "hallujudge.sdk.cli"),
        )

    @classmethod
    def of(cls, settings: WorkerSettings, workers: int) -> PoolParts:
        """Return the pool that :func:`early_workers` started for these settings, or a new one."""
        pool = _early.get()
        return pool if pool is not None and pool._settings == settings else cls(settings, workers)

    def start(self) -> None:
        """Start the workers now, rather than with the first items, and return at once."""
        self._starting = self._processes.start_soon()

    def check(self, reader: SliceReader, spans: Iterable[Span]) -> Iterator[CheckedSlice | None]:
        """Yield what slices of an archive hold; see :class:`Spread`.

        Until the workers have started, this process checks slices itself.
        """
        left = iter(spans)
        while self._starting is not None and not self._starting.done():
            if (span := next(left, None)) is None:
                return
            yield reader.check(*span)
        tasks = (SliceCheck(reader, span) for span in left)
        try:
            yield from self._processes.results(tasks, ahead=self._ahead)
        except DiedError:
            yield None

    async def parts(self, items: ItemSource, first: int) -> AsyncGenerator[Part, None]:
        """Yield the parts of items; see :class:`PartSource`."""
        try:
            async with aclosing(
                ordered_map(groups_of(items, first), self._made, limit=self._ahead)
            ) as done:
                async for parts in done:
                    for part in parts:
                        yield part
        finally:
            self.close()

    def close(self) -> None:
        """End the workers."""
        self._processes.close()

    async def _made(self, group: Group) -> list[Part]:
        """Return a group's parts; the group of a worker that dies is done again by another."""
        loop, processes = asyncio.get_running_loop(), self._processes
        try:
            return await loop.run_in_executor(processes.threads, processes.result, group)
        except DiedError as err:
            raise InternalError(died(group)) from err
