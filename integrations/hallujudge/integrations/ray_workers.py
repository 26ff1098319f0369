"""Parts of a run made by workers on a Ray cluster, and the verdicts and budgets that they share.

One actor, on the machine of the process that scores, keeps them: :class:`CallKeeper`. SQLite's log
does not work over a network file system. Each worker reaches the actor through a
:class:`RemoteCalls`. A verdict is on the disk before a worker uses it, so that no reply is lost
when a worker dies.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from importlib import import_module
from itertools import count
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple

from hallujudge.judge_service.engine.judge_factory import JudgeFactory
from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.judge_service.engine.streams import ordered_map
from hallujudge.judge_service.llm.budget import Budget, Prices, Reservation, SharedCalls
from hallujudge.judge_service.llm.cache_file import Record
from hallujudge.judge_service.llm.verdict_cache import VerdictCache
from hallujudge.judge_service.settings.judge_settings import JudgeSettings, judge_values
from hallujudge.judge_service.settings.loading import load_settings
from hallujudge.sdk.archives import ItemSource
from hallujudge.sdk.errors import InternalError, MissingExtraError, UnavailableError
from hallujudge.sdk.runs.parts import Part, batch_size
from hallujudge.sdk.runs.worker import Group, Worker, WorkerSettings, item_groups

# Seconds to wait for an answer from a cluster's address.
_PATIENCE = 10.0
# Groups that are begun for each worker before the first result is written.
_GROUPS_AHEAD = 2
# How often a group is scored before the deaths of its workers end the run.
_ATTEMPTS = 3
# With language models a group is one batch, of which a process scores eight at the same time.
_CALLING_GROUPS_AHEAD = 8


def worker_settings(given: Mapping[str, object], workers: int) -> dict[str, object]:
    """Return the judges' settings for one of several workers, independent of its machine.

    Args:
        given: The settings of this process.
        workers: Number of workers. Together they make as many concurrent calls as one process.
    """
    settings = load_settings(given).judges
    # Rounded up, so that no worker is left without a call.
    shares = {
        f"{name}.max_concurrency": max(
            1, -(-settings.language_model(name).max_concurrency // workers)
        )
        for name in ("llm", "fallback")
    }
    # The keeper stores the verdicts and counts the calls.
    kept = {"verdict_cache": "", "max_calls": -1, "max_cost": -1.0, "fallback.max_calls": -1}
    return {**judge_values(settings), **shares, **kept}


def keeper_settings(given: Mapping[str, object]) -> dict[str, object]:
    """Return the judges' settings for the keeper, independent of its process.

    Args:
        given: The settings of this process.
    """
    settings = load_settings(given).judges
    path = settings.verdict_cache
    # The keeper is another process, with another working folder.
    return {**judge_values(settings), "verdict_cache": str(Path(path).resolve())}


def is_limited(settings: JudgeSettings) -> bool:
    """Return whether calls or their cost are limited."""
    limits = (settings.max_calls, settings.max_cost, settings.fallback.max_calls)
    return any(limit >= 0 for limit in limits)


class CallKeeper:
    """An actor of Ray that keeps the verdicts and budgets of all workers.

    Args:
        given: See :func:`keeper_settings`.
    """

    def __init__(self, given: Mapping[str, object]) -> None:
        resolved = load_settings(given)
        self._settings = resolved.judges
        self._factory = JudgeFactory(resolved.judges, resolved.keys)
        self._budgets: dict[str, Budget] = {}
        self._caches: dict[str, VerdictCache] = {}
        self._held: dict[str, dict[int, tuple[str, Reservation]]] = {}
        self._numbers = count()
        self._gone: set[str] = set()

    async def ask_cache(self, worker: str, name: str, *arguments: Any) -> Any:
        """Return what a method of the verdict cache returns.

        Args:
            worker: The worker that calls it. Each worker has its own claims on calls.
            name: The method.
            arguments: Its arguments.
        """
        cache = self._cache(worker)
        found = await getattr(cache, name)(*arguments)
        # The worker may have died while its claim waited; then the call would not be made.
        if name == "claim" and found is None and worker in self._gone:
            await cache.release(*arguments)
        return found

    async def reserve(
        self, worker: str, judge: str, most_prompt: int, most_completion: int
    ) -> tuple[int, Reservation] | str:
        """Reserve a call; return its number and reservation, or why there is none."""
        if judge not in self._budgets:
            self._budgets[judge] = self._factory.budget(judge)
        budget = self._budgets[judge]
        made = await budget.reserve(most_prompt, most_completion)
        if made is None:
            return budget.exhausted_detail()
        number = next(self._numbers)
        # The worker may have died while it waited for the budget; the call would stay unsettled.
        if worker in self._gone:
            budget.keep(made)
        else:
            self._held.setdefault(worker, {})[number] = (judge, made)
        return number, made

    def settle(self, worker: str, number: int, cost: float | None) -> None:
        """Replace a reservation by what the call cost."""
        judge, reservation = self._held.get(worker, {}).pop(number, ("", None))
        if reservation is not None:
            self._budgets[judge].settle(reservation, cost)

    async def drop(self, worker: str) -> None:
        """Release the claims of a worker that died, and count its reservations as spent."""
        self._gone.add(worker)
        for judge, reservation in self._held.pop(worker, {}).values():
            # A call of a dead worker may have reached the judge, and been charged for.
            self._budgets[judge].keep(reservation)
        if worker in self._caches:
            await self._caches[worker].release_all()

    async def close(self) -> None:
        """Write the verdicts that are not written yet."""
        for cache in self._caches.values():
            await cache.close()

    def _cache(self, worker: str) -> VerdictCache:
        if worker not in self._caches:
            self._caches[worker] = VerdictCache(self._settings.verdict_cache)
        return self._caches[worker]


class RemoteCalls:
    """A worker's access to the verdicts and budgets of its run.

    Args:
        keeper: The handle of the :class:`CallKeeper`.
        worker: The worker's name.
        limited: Whether calls or their cost are limited.
    """

    def __init__(self, keeper: Any, worker: str, *, limited: bool) -> None:
        self._keeper = keeper
        self._worker = worker
        self._limited = limited
        self.verdicts = RemoteVerdicts(keeper, worker)
        """The verdict store."""

    def budget(self, judge: str, prices: Prices | None) -> RemoteBudget | None:
        """Return the budget of a judge, or None if nothing is limited."""
        return RemoteBudget(self._keeper, self._worker, judge, prices) if self._limited else None


class RemoteVerdicts:
    """The verdict store of a worker; see :class:`VerdictCache`.

    Args:
        keeper: The handle of the :class:`CallKeeper`.
        worker: The worker's name.
    """

    def __init__(self, keeper: Any, worker: str) -> None:
        self._keeper = keeper
        self._worker = worker

    async def open(self) -> None:
        """Do nothing: the process that scores has opened the file."""

    def check(self) -> None:
        """Do nothing: the process that scores has opened the file."""

    async def get(self, key: str) -> Record | None:
        """Return the record of a key; None if there is none."""
        found: Record | None = await self._ask("get", key)
        return found

    async def claim(self, key: str) -> Record | None:
        """Return the record of a key, or None if the caller must make the call now."""
        found: Record | None = await self._ask("claim", key)
        return found

    async def renew(self, key: str) -> None:
        """Keep a claim whose call is still under way."""
        await self._ask("renew", key)

    async def release(self, key: str) -> None:
        """End a claim whose call returned no record."""
        await self._ask("release", key)

    async def put(self, key: str, judge: str, record: Record) -> None:
        """Keep a record."""
        await self._ask("put", key, judge, record)

    async def fact_of(self, url: str, model: str, fact: str) -> str | None:
        """Return what is known of the judge at an address."""
        found: str | None = await self._ask("fact_of", url, model, fact)
        return found

    async def keep_fact(self, url: str, model: str, fact: str, value: str) -> None:
        """Keep what was seen of the judge at an address."""
        await self._ask("keep_fact", url, model, fact, value)

    async def close(self) -> None:
        """Do nothing: the keeper closes the file."""

    async def _ask(self, name: str, *arguments: object) -> Any:
        return await self._keeper.ask_cache.remote(self._worker, name, *arguments)


class _NumberedReservation(Reservation, frozen=True):
    """A reservation at the keeper."""

    number: int = -1


class RemoteBudget:
    """The budget of a worker; see :class:`Budget`.

    Args:
        keeper: The handle of the :class:`CallKeeper`.
        worker: The worker's name.
        judge: ``llm`` or ``fallback``.
        prices: What its tokens cost.
    """

    def __init__(self, keeper: Any, worker: str, judge: str, prices: Prices | None) -> None:
        self._keeper = keeper
        self._worker = worker
        self._judge = judge
        self._refusal = ""
        self.prices = prices
        """What tokens cost, or None if unknown."""

    async def reserve(self, most_prompt: int, most_completion_tokens: int) -> Reservation | None:
        """Reserve one call; None if the budget does not hold it."""
        made = await self._keeper.reserve.remote(
            self._worker, self._judge, most_prompt, most_completion_tokens
        )
        if isinstance(made, str):
            self._refusal = made
            return None
        number, reservation = made
        return _NumberedReservation(reservation.cost, number=number)

    def settle(self, reservation: Reservation, cost: float | None) -> None:
        """Replace a reservation by what the call cost."""
        assert isinstance(reservation, _NumberedReservation), "made by reserve"
        self._keeper.settle.remote(self._worker, reservation.number, cost)

    def keep(self, reservation: Reservation) -> None:
        """Count a reservation as spent: the call may have been charged for."""
        self.settle(reservation, reservation.cost)

    def exhausted_detail(self) -> str:
        """Return why the call that was refused last is not made."""
        return self._refusal


class RayWorker:
    """A Ray actor that makes parts.

    Args:
        settings: How it scores.
        shared: Access to the verdicts and budgets of the run; None if it calls no language model.
    """

    def __init__(self, settings: WorkerSettings, shared: SharedCalls | None) -> None:
        self._worker = Worker(settings, shared)

    async def make(self, group: Group) -> list[Part]:
        """Return the parts of a group of items."""
        return await self._worker.parts(group)


class RayParts:
    """Parts that workers on a Ray cluster make.

    Args:
        settings: How the workers score.
        workers: Number of workers; 0 for one on each processor of the cluster.
        address: Address of a running cluster; empty to start one on this machine.

    Raises:
        MissingExtraError: Ray is not installed.
        UnavailableError: The cluster can't be reached.
    """

    def __init__(self, settings: WorkerSettings, workers: int, address: str = "") -> None:
        self._ray: Any = _ray()
        # A cluster that the program runs already is its own to end.
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
        # In turns, so that every worker has one group before any has two.
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
        """Yield groups of items that this process reads: a worker's machine may lack the archive.

        With language models a group is a single batch, so that few items wait for a slow worker.
        """
        size, count = batch_size(self._settings.spec, local=True), 1 if self._calls else None
        for group in item_groups(items.start_at(first), first, size, count):
            yield group

    async def _made(self, group: Group, place: int) -> list[Part]:
        """Return a group's parts. If its worker dies, a new one scores the group again."""
        for _ in range(_ATTEMPTS):
            worker = self._workers[place]
            try:
                parts: list[Part] = await worker.actor.make.remote(group)
            except self._ray.exceptions.RayActorError:
                if self._keeper is not None:
                    await self._keeper.drop.remote(worker.name)
                # Several groups fail with one worker: only the first of them replaces it.
                if worker is self._workers[place]:
                    self._workers[place] = self._new_worker()
            except self._ray.exceptions.RayTaskError as err:
                # Ray wraps what a task raises; commands tell errors by their classes.
                raise err.cause from err
            else:
                return parts
        raise InternalError(
            f"a worker process died {_ATTEMPTS} times while items {group.first + 1} to "
            f"{group.first + group.size} were scored, perhaps for lack of memory; go on with "
            "--workers 1 --resume"
        )

    def _new_worker(self) -> _Worker:
        name = token_hex(8)
        shared = None
        if self._keeper is not None:
            shared = RemoteCalls(self._keeper, name, limited=self._limited)
        make = self._ray.remote(num_cpus=1)(RayWorker)
        return _Worker(name, make.remote(self._settings, shared))

    def _new_keeper(self, settings: WorkerSettings) -> Any:
        """Return the actor that keeps verdicts. It runs on this machine, which has their file."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        node = self._ray.get_runtime_context().get_node_id()
        here = NodeAffinitySchedulingStrategy(node_id=node, soft=False)
        # Without a processor of its own: the workers take all, and it would never start.
        make = self._ray.remote(num_cpus=0, scheduling_strategy=here)(CallKeeper)
        return make.remote(keeper_settings(settings.judges))


class _Worker(NamedTuple):
    """A worker and its name."""

    name: str
    actor: Any


def _ray() -> Any:
    with MissingExtraError.unless_installed("--engine ray", "ray"):
        return import_module("ray")


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
