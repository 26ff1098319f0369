"""Parts of a run, made by workers on a Ray cluster."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hallujudge.judge_service.engine.ordered import ordered_map

from ..errors import InternalError, MissingExtraError, UnavailableError
from .groups import ATTEMPTS, Group, died, item_groups
from .parts import Part
from .worker import Worker, WorkerSettings

if TYPE_CHECKING:
    from ..archives import ItemSource

__all__ = ["RayParts"]

_GROUPS_AHEAD = 2


class RayWorker:
    """An actor of Ray that makes parts.

    Args:
        settings: What it needs to know.
    """

    def __init__(self, settings: WorkerSettings) -> None:
        self._worker = Worker(settings)

    def make(self, group: Group) -> list[Part]:
        """Return the parts of a group of items."""
        return self._worker.parts(group)


class RayParts:
    """Parts that workers on a Ray cluster make.

    Args:
        settings: What the workers need to know.
        workers: How many there are; 0: one for each processor of the cluster.
        address: Address of a running cluster; empty: one is started on this machine.

    Raises:
        MissingExtraError: Ray is not installed.
        UnavailableError: The cluster can't be reached.
    """

    def __init__(self, settings: WorkerSettings, workers: int, address: str = "") -> None:
        self._ray: Any = _ray()
        self._settings = settings
        self._owns = not self._ray.is_initialized()
        if self._owns:
            _connect(self._ray, workers, address)
        count = workers or max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        self._workers = [self._new_worker() for _ in range(count)]

    async def parts(self, items: ItemSource, first: int) -> AsyncGenerator[Part, None]:
        """Yield the parts of items; see :class:`PartSource`."""
        free: asyncio.Queue[int] = asyncio.Queue()
        for _ in range(_GROUPS_AHEAD):
            for place in range(len(self._workers)):
                free.put_nowait(place)

        async def made(group: Group) -> list[Part]:
            place = await free.get()
            try:
                return await self._made(group, place)
            finally:
                free.put_nowait(place)

        try:
            limit = _GROUPS_AHEAD * len(self._workers)
            async with aclosing(ordered_map(_groups(items, first), made, limit=limit)) as done:
                async for parts in done:
                    for part in parts:
                        yield part
        finally:
            self.close()

    def close(self) -> None:
        """End the workers, and the cluster if this run started it."""
        for worker in self._workers:
            self._ray.kill(worker)
        if self._owns:
            self._ray.shutdown()

    async def _made(self, group: Group, place: int) -> list[Part]:
        """Return a group's parts; the group of a worker that dies is done again by a new one."""
        for _ in range(ATTEMPTS):
            worker = self._workers[place]
            try:
                parts: list[Part] = await worker.make.remote(group)
            except self._ray.exceptions.RayActorError:
                if worker is self._workers[place]:
                    self._workers[place] = self._new_worker()
            else:
                return parts
        raise InternalError(died(group))

    def _new_worker(self) -> Any:
        return self._ray.remote(num_cpus=1)(RayWorker).remote(self._settings)


async def _groups(items: ItemSource, first: int) -> AsyncIterator[Group]:
    """Yield groups of items that this process reads: others may be on machines without the file."""
    for group in item_groups(items.start_at(first), first):
        yield group


def _ray() -> Any:
    try:
        return import_module("ray")
    except ImportError as err:
        raise MissingExtraError.of("--engine ray", "ray") from err


def _connect(ray: Any, workers: int, address: str) -> None:
    # By default Ray sends statistics of its use to its authors.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    common = {"include_dashboard": False} if not address else {"address": address}
    local = {"num_cpus": workers} if workers and not address else {}
    try:
        ray.init(log_to_driver=False, logging_level="ERROR", **common, **local)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as err:
        where = f"at {address}" if address else "on this machine"
        raise UnavailableError(
            f"the Ray cluster {where} can't be used: {err}; check --ray-address"
        ) from err
