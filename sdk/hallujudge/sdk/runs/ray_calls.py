"""Verdicts and budgets that all workers on a Ray cluster share.

One actor, on the machine of the process that scores, keeps them: :class:`CallKeeper`. Each worker
reaches it through a :class:`RemoteCalls`. A verdict is on the disk before a worker uses it, so that
a worker that dies takes no reply with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hallujudge.judge_service.engine.judge_factory import JudgeFactory
from hallujudge.judge_service.llm.budget import Prices, Reservation
from hallujudge.judge_service.llm.verdict_cache import VerdictCache
from hallujudge.judge_service.settings.judge_settings import JudgeSettings
from hallujudge.judge_service.settings.server_settings import load_settings

if TYPE_CHECKING:
    from hallujudge.judge_service.llm.budget import Budget, Usage
    from hallujudge.judge_service.llm.cache_file import Record

__all__ = ["CallKeeper", "RemoteCalls", "is_limited", "keeper_settings", "worker_settings"]


def worker_settings(given: Mapping[str, object], workers: int) -> dict[str, object]:
    """Return the judges' settings for one of several workers, whatever its machine has set.

    Args:
        given: The settings that this process was given.
        workers: How many workers there are; together they make as many calls as one process.
    """
    settings = load_settings(given).judges
    shares = {
        name: max(1, -(-getattr(settings, name) // workers))
        for name in ("llm_max_concurrency", "fallback_max_concurrency")
    }
    # Verdicts are kept, and calls are counted, in one place.
    kept = {"verdict_cache": "", "max_calls": -1, "max_cost": -1.0, "fallback_max_calls": -1}
    return {**asdict(settings), **shares, **kept}


def keeper_settings(given: Mapping[str, object]) -> dict[str, object]:
    """Return the judges' settings for the keeper, whatever its process has set.

    Args:
        given: The settings that this process was given.
    """
    settings = load_settings(given).judges
    path = settings.verdict_cache
    return {**asdict(settings), "verdict_cache": str(Path(path).resolve())}


def is_limited(settings: JudgeSettings) -> bool:
    """Return whether calls or their cost are limited."""
    limits = (settings.max_calls, settings.max_cost, settings.fallback_max_calls)
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
            worker: The worker that calls it; each one's claims are its own.
            name: The method.
            arguments: Its arguments.
        """
        cache = self._cache(worker)
        found = await getattr(cache, name)(*arguments)
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
        """Let others make the calls of a worker that has died; what it reserved may be charged."""
        self._gone.add(worker)
        for judge, reservation in self._held.pop(worker, {}).values():
            self._budgets[judge].keep(reservation)
        if worker in self._caches:
            await self._caches[worker].release_all()

    async def close(self) -> None:
        """Write what is not written yet."""
        for cache in self._caches.values():
            await cache.close()

    def _cache(self, worker: str) -> VerdictCache:
        if worker not in self._caches:
            self._caches[worker] = VerdictCache(self._settings.verdict_cache)
        return self._caches[worker]


class RemoteCalls:
    """A worker's way to the verdicts and budgets of its run.

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
        """Return the budget of a judge; None: nothing is limited."""
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
        """End a claim whose call gave no record."""
        await self._ask("release", key)

    async def put(self, key: str, judge: str, record: Record) -> None:
        """Keep a record."""
        await self._ask("put", key, judge, record)

    async def server_of(self, url: str, model: str) -> str | None:
        """Return the server version last seen at an address."""
        found: str | None = await self._ask("server_of", url, model)
        return found

    async def remember_server(self, url: str, model: str, server: str) -> None:
        """Keep the server version seen at an address."""
        await self._ask("remember_server", url, model, server)

    async def close(self) -> None:
        """Do nothing: the keeper closes the file."""

    async def _ask(self, name: str, *arguments: object) -> Any:
        return await self._keeper.ask_cache.remote(self._worker, name, *arguments)


@dataclass(frozen=True, slots=True)
class _NumberedReservation(Reservation):
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
        """What tokens cost; None: not known."""

    def cost_of(self, usage: Usage) -> float | None:
        """Return the cost of a call; None if prices are not known."""
        if self.prices is None:
            return None
        return self.prices.cost(usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens)

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
