"""Making each call once: equal calls share a reply in memory, in the cache and across processes."""

from __future__ import annotations

import asyncio
import json
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from types import TracebackType
from typing import Generic, TypeVar

from msgspec import Struct

from ..stopping import JointWork, begun, cancel_all, keeps_calls
from ..tenancy import tenancy
from .budget import VerdictStore
from .cache_file import Record
from .chat import ChatRequest
from .client import Answer, ChatClient, TakenError, Turn

# Three renewals fit into a claim's life (60 seconds in the cache), so that one may be late.
_RENEW_SECONDS = 20.0
# Values kept in memory at most; the one used the longest ago goes first. A verdict takes about
# 900 bytes, of which its record as JSON is about 300; a reply with keywords or claims may be long.
_REMEMBERED, _REMEMBERED_CHARS = 50_000, 32 << 20
_T = TypeVar("_T")
_R = TypeVar("_R")


class Reading(Struct, Generic[_T], frozen=True, kw_only=True):
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
        renew_seconds: How often the claim of a call that is under way is renewed.
    """

    def __init__(
        self,
        client: ChatClient,
        cache: VerdictStore | None,
        renew_seconds: float = _RENEW_SECONDS,
    ) -> None:
        self._client = client
        self._cache = cache
        self._renew_seconds = renew_seconds
        self._memory: OrderedDict[str, tuple[_T, int]] = OrderedDict()
        self._remembered_chars = 0
        self._flights: SingleFlight[_T] = SingleFlight()
        # Callers of this process that share its claim of a key; the last one ends it.
        self._claims: Counter[str] = Counter()

    async def known(self, key: str, reading: Reading[_T]) -> _T | None:
        """Return the value of a call that was made before; None if none is known."""
        if key in self._memory:
            self._memory.move_to_end(key)
            tenancy().recorder.looked_up("memory")
            return self._memory[key][0]
        record = await self._cache.get(key) if self._cache is not None else None
        value = reading.from_record(record) if record is not None else None
        if value is not None:
            self._reused()
        return value

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
        known, _ = self._memory.get(key, (None, 0))
        if known is not None and reading.is_whole(known):
            tenancy().recorder.looked_up("memory")
            return known

        async def fly(turn: Turn) -> _T:
            async def call() -> Answer:
                return await self._client.ask(request, has_fallback=has_fallback, turn=turn)

            with tenancy().gate.open():
                value = await self._found(key, call, reading, label)
            if (record := reading.to_record(value)) is not None:
                self._remember(key, value, len(json.dumps(record)))
            return value

        # An item whose calls only wait can't be what ends the server, so it is not a suspect
        # meanwhile.
        tenancy().flight.waits()
        # How long an outage is waited for depends on the fallback, so such calls are not shared.
        return await self._flights.do(f"{key}:{has_fallback}", tenancy().user.id, fly)

    async def _found(
        self, key: str, call: Callable[[], Awaitable[Answer]], reading: Reading[_T], label: str
    ) -> _T:
        cache = self._cache
        if cache is None:
            tenancy().recorder.looked_up("nowhere")
            return reading.read(await call())
        # True until a record is kept or found; the next caller must then make the call.
        claimed = True
        self._claims[key] += 1
        try:
            record = await cache.claim(key)
            if record is not None:
                value = reading.from_record(record)
                # A record that lacks an answer, or that can't be read, is asked for again.
                if value is not None and reading.is_whole(value):
                    claimed = False
                    self._reused()
                    return value
            tenancy().recorder.looked_up("nowhere")
            answer = await self._asked(key, call, cache)
            value = reading.read(answer)
            if (kept := reading.to_record(value)) is not None:
                claimed = False
                await cache.put(key, label, kept)
            return value
        finally:
            self._claims[key] -= 1
            if not self._claims[key]:
                del self._claims[key]
                if claimed:
                    await cache.release(key)

    async def _asked(
        self, key: str, call: Callable[[], Awaitable[Answer]], cache: VerdictStore
    ) -> Answer:
        """One call, whose claim is renewed while it is under way."""
        asked = begun(call())
        try:
            while not asked.done():
                # Unlike wait_for, this leaves the call running when its time is over.
                await asyncio.wait({asked}, timeout=self._renew_seconds)
                if not asked.done():
                    await cache.renew(key)
            return asked.result()
        finally:
            await cancel_all(asked)

    def _reused(self) -> None:
        tenancy().recorder.looked_up("cache")
        self._client.statistics.reused += 1

    def _remember(self, key: str, value: _T, chars: int) -> None:
        _, before = self._memory.pop(key, (None, 0))
        self._memory[key] = value, chars
        self._remembered_chars += chars - before
        while len(self._memory) > _REMEMBERED or self._remembered_chars > _REMEMBERED_CHARS:
            _, (_, freed) = self._memory.popitem(last=False)
            self._remembered_chars -= freed


class SingleFlight(Generic[_T]):
    """Sends a question's call once; callers that ask it meanwhile get the same value.

    Callers of one payer share a call and its failure. Payers share values only: each waits in its
    own place of the queue, with its own budget and its own failures, until one payer's call is
    sent. The others then wait for its value, and send their own call if there is none.

    A payer's call is cancelled when none of its callers waits for it any more, unless it is already
    sent and another payer waits for the value, or its run failed and may ask again.
    """

    def __init__(self) -> None:
        self._questions: dict[tuple[int, str], _Question[_T]] = {}

    async def do(self, key: str, payer: str, call: Callable[[Turn], Awaitable[_T]]) -> _T:
        """Return the call's value.

        Args:
            key: The question.
            payer: The caller that pays if the call is sent for it.
            call: Makes the call, and enters the turn when it sends.
        """
        # Tasks belong to a loop, and a judge may serve several, one after the other.
        at = (id(asyncio.get_running_loop()), key)
        question = self._questions.setdefault(at, _Question())
        flight = question.flights.get(payer)
        if flight is None:
            flight = question.flights[payer] = _Flight(question, payer, call)
            flight.task.add_done_callback(partial(self._landed, at, flight))
        flight.waiting += 1
        kept = False
        try:
            # A caller that is cancelled does not end the call of the others.
            return await asyncio.shield(flight.task)
        except asyncio.CancelledError as err:
            kept = keeps_calls(err)
            raise
        finally:
            flight.waiting -= 1
            if not flight.waiting and not (flight.is_sent and (flight.is_shared or kept)):
                flight.cancel()

    def _landed(self, at: tuple[int, str], flight: _Flight[_T], _task: object) -> None:
        flight.forget()
        question = flight.question
        if not question.flights and self._questions.get(at) is question:
            del self._questions[at]


class _Question(Generic[_T]):
    """One question: who asks it, who sends it now, and its value."""

    def __init__(self) -> None:
        self.flights: dict[str, _Flight[_T]] = {}
        self.sender: _Flight[_T] | None = None
        # In a tuple, which tells any value from none yet.
        self.value: tuple[_T] | None = None
        self.freed = asyncio.Event()

    def free(self) -> None:
        """Let the payers that wait for the sender go on."""
        self.sender = None
        self.freed.set()
        # A new event, so that later callers wait for the next sender.
        self.freed = asyncio.Event()


class _Flight(Generic[_T]):
    """One payer's call; a context manager for the time in which it is sent."""

    def __init__(
        self, question: _Question[_T], payer: str, call: Callable[[Turn], Awaitable[_T]]
    ) -> None:
        self.question = question
        self.waiting = 0
        self._payer = payer
        self.task = begun(self._value(call))

    @property
    def is_sent(self) -> bool:
        """Whether the call is sent, and its value not read yet."""
        return self.question.sender is self

    @property
    def is_shared(self) -> bool:
        """Whether another payer waits for the value."""
        return len(self.question.flights) > 1

    def forget(self) -> None:
        """Leave the question to other calls."""
        if self.question.flights.get(self._payer) is self:
            del self.question.flights[self._payer]
        if self.question.sender is self:
            self.question.free()

    def cancel(self) -> None:
        """End the call, for which no caller waits."""
        self.forget()
        self.task.cancel()

    async def _value(self, call: Callable[[Turn], Awaitable[_T]]) -> _T:
        question = self.question
        while True:
            # Again after each sender: another payer that waited may have begun to send first.
            while question.sender is not None:
                await question.freed.wait()
            if question.value is not None:
                return question.value[0]
            try:
                value = await call(self)
            # Another payer began to send while this call waited for its place.
            except TakenError:
                continue
            question.value = (value,)
            return value

    def __enter__(self) -> None:
        if self.question.sender is not None or self.question.value is not None:
            raise TakenError
        self.question.sender = self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if kind is None:  # the others wait until the answer is read and kept
            return
        if self.question.sender is self:
            self.question.free()
        # A sent call outlives its callers for the others' sake only; once failed, it is not made
        # again.
        if not self.waiting:
            self.cancel()


async def run_bounded(
    jobs: Iterable[_T], work: Callable[[_T], Awaitable[_R]], workers: int
) -> list[_R]:
    """Run jobs with a few workers, so that a million jobs do not make a million tasks.

    The first error ends all work and is raised as it is.

    Args:
        jobs: The jobs, taken one by one.
        work: Runs one job.
        workers: Jobs at the same time at most.

    Returns:
        What the work returned, in the order of the jobs.
    """
    # One iterator for all workers: a job that takes long holds up none of those after it.
    queue = enumerate(jobs)
    done: dict[int, _R] = {}

    async def worker() -> None:
        for place, job in queue:
            done[place] = await work(job)

    joint = JointWork()
    tasks = [begun(worker()) for _ in range(workers)]
    try:
        with joint:
            await asyncio.gather(*tasks)
    finally:
        await joint.cancel(*tasks)
    return [done[place] for place in range(len(done))]
