"""Making each call once: equal calls share a reply in memory, in the cache and across processes."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from ..stopping import open_call
from ..work_recorder import recorder
from .budget import VerdictStore
from .cache_file import Record
from .chat import ChatRequest
from .client import Answer, ChatClient

# Three renewals fit into a claim's life (60 seconds in the cache), so that one may be late.
_RENEW_SECONDS = 20.0
_REMEMBERED = 50_000
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading(Generic[_T]):
    """How an answer becomes a value, and a value a record of the cache."""

    read: Callable[[Answer], _T]
    """Reads an answer."""
    to_record: Callable[[_T], Record | None]
    """Makes a record; None if the value is a failure, which is not kept."""
    from_record: Callable[[Record], _T | None]
    """Reads a record; None if it cannot be read."""
    is_whole: Callable[[_T], bool] = lambda _value: True
    """Whether a kept value answers everything that was asked."""


class AskOnce(Generic[_T]):
    """Finds the values of calls: in memory, in the cache, in another process, or by calling.

    Args:
        client: Calls the model.
        cache: Keeps records between runs; None keeps values in memory only.
        remembered: Values kept in memory at most; the one used the longest ago goes first.
        renew_seconds: How often the claim of a call that is under way is renewed.
    """

    def __init__(
        self,
        client: ChatClient,
        cache: VerdictStore | None,
        remembered: int = _REMEMBERED,
        renew_seconds: float = _RENEW_SECONDS,
    ) -> None:
        self._client = client
        self._cache = cache
        self._remembered = remembered
        self._renew_seconds = renew_seconds
        self._memory: OrderedDict[str, _T] = OrderedDict()
        self._flights: SingleFlight[_T] = SingleFlight()

    async def known(self, key: str, reading: Reading[_T]) -> _T | None:
        """Return the value of a call that was made before; None if none is known."""
        if key in self._memory:
            self._memory.move_to_end(key)
            recorder().looked_up("memory")
            return self._memory[key]
        record = await self._cache.get(key) if self._cache is not None else None
        if record is None:
            return None
        recorder().looked_up("cache")
        return reading.from_record(record)

    async def ask(
        self,
        key: str,
        request: ChatRequest,
        reading: Reading[_T],
        *,
        label: str,
        has_fallback: bool = False,
    ) -> _T:
        """Return the value of a call, which is made only if it was not made before.

        Args:
            key: Everything that the value depends on, from :func:`cache_key`.
            request: The call.
            reading: Reads answers and records.
            label: The judge in words, for people who look at the cache.
            has_fallback: Whether another judge is asked if this one fails.

        Raises:
            CallFailedError: The call failed.
            InvalidInputError: The key is rejected, or the model does not exist.
            UnavailableError: The judge answered no call for a long time.
        """
        known = self._memory.get(key)
        if known is not None and reading.is_whole(known):
            recorder().looked_up("memory")
            return known

        async def fly() -> _T:
            with open_call():
                value = await self._found(key, request, reading, label, has_fallback)
            if reading.to_record(value) is not None:
                self._remember(key, value)
            return value

        return await self._flights.do(f"{key}:{has_fallback}", fly)

    async def _found(
        self, key: str, request: ChatRequest, reading: Reading[_T], label: str, has_fallback: bool
    ) -> _T:
        cache = self._cache
        if cache is None:
            recorder().looked_up("nowhere")
            return reading.read(await self._client.ask(request, has_fallback=has_fallback))
        # True until a record is kept or found: whoever waits for the claim must then make the call.
        claimed = True
        try:
            record = await cache.claim(key)
            if record is not None:
                value = reading.from_record(record)
                if value is not None and reading.is_whole(value):
                    claimed = False
                    recorder().looked_up("cache")
                    return value
            recorder().looked_up("nowhere")
            answer = await self._asked(key, request, cache, has_fallback)
            value = reading.read(answer)
            if (kept := reading.to_record(value)) is not None:
                claimed = False
                await cache.put(key, label, kept)
            return value
        finally:
            if claimed:
                await cache.release(key)

    async def _asked(
        self, key: str, request: ChatRequest, cache: VerdictStore, has_fallback: bool
    ) -> Answer:
        """One call, whose claim is renewed while it is under way."""
        call = asyncio.ensure_future(self._client.ask(request, has_fallback=has_fallback))
        try:
            while not call.done():
                await asyncio.wait({call}, timeout=self._renew_seconds)
                if not call.done():
                    await cache.renew(key)
            return call.result()
        finally:
            if not call.done():
                call.cancel()
                await asyncio.gather(call, return_exceptions=True)

    def _remember(self, key: str, value: _T) -> None:
        self._memory[key] = value
        self._memory.move_to_end(key)
        while len(self._memory) > self._remembered:
            self._memory.popitem(last=False)


class SingleFlight(Generic[_T]):
    """Runs a question's call once; callers that ask it meanwhile get the same result.

    The call is cancelled when no caller waits for it any more, and only then.
    """

    def __init__(self) -> None:
        self._flights: dict[tuple[int, str], _Flight[_T]] = {}

    async def do(self, key: str, call: Callable[[], Awaitable[_T]]) -> _T:
        """Return the call's result.

        Args:
            key: The question.
            call: Makes the call.
        """
        # Tasks belong to a loop, and a judge may serve several, one after the other.
        at = (id(asyncio.get_running_loop()), key)
        flight = self._flights.get(at)
        if flight is None:
            flight = self._flights[at] = _Flight(asyncio.ensure_future(_awaited(call)), 0)
            flight.task.add_done_callback(partial(self._forget, at, flight))
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.task.done():
                self._forget(at, flight)
                flight.task.cancel()

    def _forget(self, at: tuple[int, str], flight: _Flight[_T], _task: object = None) -> None:
        if self._flights.get(at) is flight:
            del self._flights[at]


@dataclass(slots=True)
class _Flight(Generic[_T]):
    task: asyncio.Task[_T]
    waiting: int


async def _awaited(call: Callable[[], Awaitable[_T]]) -> _T:
    return await call()


async def run_bounded(
    jobs: Iterable[_T], work: Callable[[_T], Awaitable[None]], workers: int
) -> None:
    """Run jobs with a few workers, so that a million jobs do not make a million tasks.

    The first error ends all work and is raised as it is.

    Args:
        jobs: The jobs, taken one by one.
        work: Runs one job.
        workers: Jobs at the same time at most.
    """
    queue = iter(jobs)

    async def worker() -> None:
        for job in queue:
            await work(job)

    tasks = [asyncio.ensure_future(worker()) for _ in range(workers)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
