"""Parts of a run, made by a pool of processes."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import aclosing
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from hallujudge.judge_service.engine.ordered import ordered_map

from ..errors import InternalError
from .batching import batches
from .parts import Part
from .worker import WorkerSettings, make_parts, prepare

if TYPE_CHECKING:
    from hallujudge.metrics import Item

    from ..backends.base import Batch

__all__ = ["PoolParts"]

_GROUP = 8
_GROUPS_AHEAD = 3
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class _Group:
    """Consecutive batches, which go to a worker together."""

    batches: Sequence[Batch]
    first: int

    @property
    def size(self) -> int:
        return sum(map(len, self.batches))


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
            async with aclosing(
                ordered_map(_groups(items, first), self._made, limit=limit)
            ) as done:
                async for parts in done:
                    for part in parts:
                        yield part
        finally:
            self.close()

    def close(self) -> None:
        """End the workers."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _made(self, group: _Group) -> list[Part]:
        """Return a group's parts; the group of a worker that dies is done again by another."""
        loop = asyncio.get_running_loop()
        for _ in range(_ATTEMPTS):
            pool = self._pool
            try:
                return await loop.run_in_executor(pool, make_parts, group.batches, group.first)
            except BrokenProcessPool:
                # All groups under way fail together; the first to notice replaces the pool.
                if pool is self._pool:
                    pool.shutdown(wait=False)
                    self._pool = self._new_pool()
        raise InternalError(
            f"a worker process died {_ATTEMPTS} times while items {group.first + 1} to "
            f"{group.first + group.size} were scored, perhaps for lack of memory; go on with "
            "ScoreRun(resume=True) and fewer workers"
        )

    def _new_pool(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            self._workers,
            # A fork would copy locks that other threads hold.
            mp_context=multiprocessing.get_context("spawn"),
            initializer=prepare,
            initargs=(self._settings,),
        )


async def _groups(items: Iterator[Item], first: int) -> AsyncIterator[_Group]:
    source = batches(items)
    while group := list(islice(source, _GROUP)):
        made = _Group(group, first)
        yield made
        first += made.size
