"""Parts of a run, made by a pool of processes."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import aclosing
from typing import TYPE_CHECKING

from hallujudge.judge_service.engine.ordered import ordered_map

from ..errors import InternalError
from .groups import ATTEMPTS, Group, groups
from .parts import Part
from .worker import WorkerSettings, make_parts, prepare

if TYPE_CHECKING:
    from hallujudge.metrics import Item

__all__ = ["PoolParts"]

_GROUPS_AHEAD = 3


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

    async def parts(self, items: Iterator[Item], first: int) -> AsyncGenerator[Part, None]:
        """Yield the parts of items; see :class:`PartSource`."""
        limit = _GROUPS_AHEAD * self._workers
        try:
            async with aclosing(ordered_map(groups(items, first), self._made, limit=limit)) as done:
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
                return await loop.run_in_executor(pool, make_parts, group.batches, group.first)
            except BrokenProcessPool:
                # All groups under way fail together; the first to notice replaces the pool.
                if pool is self._pool:
                    pool.shutdown(wait=False)
                    self._pool = self._new_pool()
        raise InternalError(group.died())

    def _new_pool(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            self._workers,
            # A fork would copy locks that other threads hold.
            mp_context=multiprocessing.get_context("spawn"),
            initializer=prepare,
            initargs=(self._settings,),
        )
