"""Parts of a run, made by a pool of processes."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
from collections.abc import AsyncGenerator, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from multiprocessing.context import BaseContext
from typing import TYPE_CHECKING

from hallujudge.judge_service.engine.ordered import ordered_map

from ..errors import InternalError
from .groups import ATTEMPTS, Group, died, groups_of
from .parts import Part
from .worker import WorkerSettings, make_parts, prepare
from .workers import early_count

if TYPE_CHECKING:
    from hallujudge.judge_service.engine.spec import ScoreSpec

    from ..archives import ItemSource
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
        self._workers = workers
        self._pool = self._new_pool()

    @classmethod
    def of(cls, settings: WorkerSettings, workers: int) -> PoolParts:
        """Return the pool that :func:`early_workers` started for these settings, or a new one."""
        pool = _early.get()
        return pool if pool is not None and pool._settings == settings else cls(settings, workers)

    def start(self) -> None:
        """Start the workers now, rather than with the first items."""
        self._pool.submit(os.getpid)

    async def parts(self, items: ItemSource, first: int) -> AsyncGenerator[Part, None]:
        """Yield the parts of items; see :class:`PartSource`."""
        limit = _GROUPS_AHEAD * self._workers
        try:
            async with aclosing(
                ordered_map(groups_of(items, first), self._made, limit=limit)
            ) as done:
                async for parts in done:
                    for part in parts:
                        yield part
        finally:
            self.close()

    def close(self) -> None:
        """End the workers."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _made(self, group: Group) -> list[Part]:
        """Return a group's parts; the group of a worker that dies is done again by another."""
        loop = asyncio.get_running_loop()
        for _ in range(ATTEMPTS):
            pool = self._pool
            try:
                return await loop.run_in_executor(pool, make_parts, group)
            except BrokenProcessPool:
                # All groups under way fail together; the first to notice replaces the pool.
                if pool is self._pool:
                    pool.shutdown(wait=False)
                    self._pool = self._new_pool()
        raise InternalError(died(group))

    def _new_pool(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            self._workers,
            # A fork would copy locks that other threads hold.
            mp_context=_context(),
            initializer=prepare,
            initargs=(self._settings,),
        )


def _context() -> BaseContext:
    """Return how processes start: forked from one that has imported what they need, if possible."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    # The second one is what the command's own script imports, which every worker runs again.
    context.set_forkserver_preload([f"{__package__}.preloaded", "hallujudge.sdk.cli"])
    return context
