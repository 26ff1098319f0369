"""Parts of a run, made by workers on a Ray cluster."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from importlib import import_module
from secrets import token_hex
from typing import TYPE_CHECKING, Any, NamedTuple

from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.judge_service.engine.streams import ordered_map
from hallujudge.judge_service.settings.server_settings import load_settings

from ..errors import InternalError, MissingExtraError, UnavailableError
from .groups import ATTEMPTS, GROUP_BATCHES, Group, died, item_groups
from .parts import Part
from .ray_calls import CallKeeper, RemoteCalls, is_limited, keeper_settings, worker_settings
from .worker import Worker, WorkerSettings

if TYPE_CHECKING:
    from hallujudge.judge_service.llm.budget import SharedCalls

    from ..archives import ItemSource

__all__ = ["RayParts"]

_PATIENCE = 10.0
"""Seconds that a cluster's address has to answer within."""
_GROUPS_AHEAD = 2
_CALLING_GROUPS_AHEAD = 8
"""The same of a run that calls language models: batches of which a process scores eight at once."""


class RayWorker:
    """An actor of Ray that makes parts.

    Args:
        settings: What it needs to know.
        shared: Its way to the verdicts and budgets of the run; None: it calls no language model.
    """

    def __init__(self, settings: WorkerSettings, shared: SharedCalls | None) -> None:
        self._worker = Worker(settings, shared)

    async def make(self, group: Group) -> list[Part]:
        """Return the parts of a group of items."""
        return await self._worker.parts(group)


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
        self._owns = not self._ray.is_initialized()
        if self._owns:
            _connect(self._ray, workers, address)
        count = workers or max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        self._calls = metric_entry(settings.spec.metric).calls_models(settings.spec)
        self._keeper: Any = self._new_keeper(settings) if self._calls else None
        self._limited = self._calls and is_limited(load_settings(settings.judges).judges)
        judges = worker_settings(settings.judges, count) if self._calls else settings.judges
        self._settings = replace(settings, judges=judges)
        self._workers = [self._new_worker() for _ in range(count)]

    async def parts(self, items: ItemSource, first: int) -> AsyncGenerator[Part, None]:
        """Yield the parts of items; see :class:`PartSource`."""
        ahead = _CALLING_GROUPS_AHEAD if self._calls else _GROUPS_AHEAD
        free: asyncio.Queue[int] = asyncio.Queue()
        for _ in range(ahead):
            for place in range(len(self._workers)):
                free.put_nowait(place)

        async def made(group: Group) -> list[Part]:
            place = await free.get()
            try:
                return await self._made(group, place)
            finally:
                free.put_nowait(place)

        try:
            limit = ahead * len(self._workers)
            groups = self._groups(items, first)
            async with aclosing(ordered_map(groups, made, limit=limit)) as done:
                async for parts in done:
                    for part in parts:
                        yield part
            if self._keeper is not None:
                await self._keeper.close.remote()
        finally:
            self.close()

    def close(self) -> None:
        """End the workers, and the cluster if this run started it."""
        for worker in self._workers:
            self._ray.kill(worker.actor)
        if self._keeper is not None:
            self._ray.kill(self._keeper)
        if self._owns:
            self._ray.shutdown()

    async def _groups(self, items: ItemSource, first: int) -> AsyncIterator[Group]:
        """Yield groups of items that this process reads: others may be on machines without it.

        A batch has whole images, and is all that waits for a worker that calls language models.
        """
        size = 1 if self._calls else GROUP_BATCHES
        for group in item_groups(items.start_at(first), first, size):
            yield group

    async def _made(self, group: Group, place: int) -> list[Part]:
        """Return a group's parts; the group of a worker that dies is done again by a new one."""
        for _ in range(ATTEMPTS):
            worker = self._workers[place]
            try:
                parts: list[Part] = await worker.actor.make.remote(group)
            except self._ray.exceptions.RayActorError:
                if self._keeper is not None:
                    await self._keeper.drop.remote(worker.name)
                if worker is self._workers[place]:
                    self._workers[place] = self._new_worker()
            except self._ray.exceptions.RayTaskError as err:
                raise err.cause from err
            else:
                return parts
        raise InternalError(died(group))

    def _new_worker(self) -> _Worker:
        name = token_hex(8)
        shared = None
        if self._keeper is not None:
            shared = RemoteCalls(self._keeper, name, limited=self._limited)
        make = self._ray.remote(num_cpus=1)(RayWorker)
        return _Worker(name, make.remote(self._settings, shared))

    def _new_keeper(self, settings: WorkerSettings) -> Any:
        """Return the actor that keeps verdicts, on this machine, which has their file."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        node = self._ray.get_runtime_context().get_node_id()
        here = NodeAffinitySchedulingStrategy(node_id=node, soft=False)
        make = self._ray.remote(num_cpus=0, scheduling_strategy=here)(CallKeeper)
        return make.remote(keeper_settings(settings.judges))


class _Worker(NamedTuple):
    """A worker and its name."""

    name: str
    actor: Any


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
        # Without an address, and for "auto", Ray itself looks there.
        _check_answers(os.environ.get("RAY_ADDRESS", "") if address in ("", "auto") else address)
        ray.init(log_to_driver=False, logging_level="ERROR", **common, **local)
    # Ray raises a plain Exception where its own processes do not start in time.
    except Exception as err:
        raise _unusable(address, err) from err


def _check_answers(address: str) -> None:
    """Raise an OSError if nothing listens at a cluster's address: Ray itself tries for ever."""
    host, separator, port = address.removeprefix("ray://").rpartition(":")
    if separator and port.isascii() and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE).close()


def _unusable(address: str, err: Exception) -> UnavailableError:
    if address:
        return UnavailableError(
            f"the Ray cluster at {address!r} can't be used: {err}; check --ray-address"
        )
    return UnavailableError(
        f"Ray can't be started on this machine: {err}; other programs may leave it too little of "
        "the processor; run it again, or without --engine ray"
    )
