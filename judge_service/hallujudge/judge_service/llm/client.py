"""A chat client: retries, circuit breaker, adaptive concurrency and budget around one endpoint."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from random import Random

from ..errors import InvalidInputError
from .breaker import CircuitBreaker
from .budget import Budget, Reservation
from .chat import ChatReply, ChatRequest, Dialect, Sampling, parse_reply, payload_of
from .failures import CallFailedError, FailureKind
from .http import Endpoint, HttpEndpoint
from .limiter import AdaptiveLimiter
from .retry import RetryPolicy
from .usage import Usage

__all__ = ["Answer", "CallStatistics", "ChatClient", "ChatSettings", "Tools"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatSettings:
    """How a chat model is talked to."""

    endpoint: Endpoint
    """Where it is."""
    model: str
    """Its name there."""
    dialect: Dialect = "plain"
    """Whose extensions the server understands."""
    constraint: str = "auto"
    """``json_schema``, ``structured_outputs`` (vLLM's), ``none``, or ``auto`` by the dialect."""
    sampling: Sampling = field(default_factory=Sampling)
    """How answers are drawn."""
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    """When failed calls are made again."""
    max_concurrency: int = 64
    """Calls in flight at most."""
    circuit_threshold: int = 8
    """Failures in a row after which the model isn't asked for a while."""
    circuit_seconds: float = 30.0
    """How long it isn't."""
    tokenizer: str = ""
    """Its tokenizer's file, to count prompts by; empty: the server is asked, if it can count."""

    @property
    def sent_constraint(self) -> str:
        """The constraint with ``auto`` resolved."""
        if self.constraint != "auto":
            return self.constraint
        return "structured_outputs" if self.dialect == "vllm" else "json_schema"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What a client would take from the world; tests pass their own."""

    clock: Callable[[], float] = time.monotonic
    """Seconds on a clock that never goes back."""
    random: Callable[[], float] = field(default_factory=lambda: Random().random)  # noqa: S311
    """Numbers in [0, 1), for jitter."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Waits."""


@dataclass(slots=True)
class CallStatistics:
    """What a client did so far, failed calls included."""

    calls: int = 0
    """Calls sent."""
    answered: int = 0
    """Calls answered."""
    retries: int = 0
    """Calls that were a repetition."""
    failures: Counter[str] = field(default_factory=Counter)
    """Failed calls by kind."""
    usage: Usage = field(default_factory=Usage)
    """What all answers took."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply and what it took."""

    reply: ChatReply
    """The reply."""
    usage: Usage
    """What it took."""


class ChatClient:
    """Asks one chat model, as often and as fast as its server, the settings and the budget allow.

    Args:
        settings: How it is talked to.
        budget: What may be spent; shared with other clients where it is theirs as well.
        tools: Clock, randomness and sleep.
    """

    def __init__(
        self, settings: ChatSettings, budget: Budget | None = None, tools: Tools | None = None
    ) -> None:
        self.settings = settings
        self.budget = budget or Budget()
        self._tools = tools or Tools()
        self.http = HttpEndpoint(settings.endpoint, settings.max_concurrency)
        self.breaker = CircuitBreaker(
            settings.circuit_threshold, settings.circuit_seconds, self._tools.clock
        )
        self.limiter = AdaptiveLimiter(settings.max_concurrency, self._tools.clock)
        self.statistics = CallStatistics()
        self._fatal: InvalidInputError | None = None

    async def ask(self, request: ChatRequest) -> Answer:
        """One answer.

        Raises:
            CallFailedError: There is none; the failure says why.
            InvalidInputError: There will never be one: the key is refused, or no such model.
        """
        body = payload_of(
            request,
            self.settings.model,
            self.settings.sampling,
            self.settings.dialect,
            self.settings.sent_constraint,
        )
        attempt = 0
        while True:
            attempt += 1
            try:
                return await self._once(request, body, retried=attempt > 1)
            except CallFailedError as failure:
                self.statistics.failures[failure.kind.value] += 1
                if failure.kind.is_fatal:
                    raise self._give_up(failure) from failure
                wait = self.settings.retry.wait_before_next(failure, attempt, self._tools.random())
                if wait is None:
                    raise _counted(failure, attempt) from failure
            await self._tools.sleep(wait)

    async def close(self) -> None:
        """Closes all connections."""
        await self.http.close()

    async def _once(
        self, request: ChatRequest, body: dict[str, object], *, retried: bool
    ) -> Answer:
        started = await self.limiter.acquire()
        failure: CallFailedError | None = None
        try:
            while (pause := self.limiter.pause_left) > 0:
                await self._tools.sleep(pause)
            return await self._guarded(request, body, retried=retried)
        except CallFailedError as err:
            failure = err
            raise
        finally:
            limited = failure is not None and failure.kind is FailureKind.RATE
            asked = failure.retry_after if failure is not None and limited else None
            longest = self.settings.retry.longest_wait
            self.limiter.release(
                started,
                limited=limited,
                retry_after=asked if asked is not None and asked <= longest else None,
            )

    async def _guarded(
        self, request: ChatRequest, body: dict[str, object], *, retried: bool
    ) -> Answer:
        """One call past the sticky error, the circuit and the budget, reporting back to each."""
        if self._fatal is not None:
            raise self._fatal
        if not self.breaker.try_pass():
            raise CallFailedError(
                FailureKind.CIRCUIT,
                f"failed {self.settings.circuit_threshold} times in a row; asked again in "
                f"{self.breaker.seconds_left:.0f} s",
            )
        reservation = None
        try:
            most = _most_prompt_tokens(request)
            reservation = await self.budget.reserve(most, request.max_tokens)
        finally:
            if reservation is None:
                self.breaker.abandoned()
        if reservation is None:
            raise CallFailedError(FailureKind.BUDGET, self.budget.exhausted_detail())
        self.statistics.calls += 1
        self.statistics.retries += retried
        return await self._sent(body, reservation)

    async def _sent(self, body: dict[str, object], reservation: Reservation) -> Answer:
        started = self._tools.clock()
        try:
            reply = parse_reply(await self.http.post("chat/completions", body))
        except CallFailedError as failure:
            self._report(failure)
            if failure.kind.may_be_billed:
                self.budget.keep(reservation)
            else:
                self.budget.settle(reservation, 0.0)
            raise
        except BaseException:
            # Called off, or something that isn't installed: the answer may be on its way.
            self.breaker.abandoned()
            self.budget.keep(reservation)
            raise
        self.breaker.succeeded()
        return self._counted_answer(reply, reservation, self._tools.clock() - started)

    def _counted_answer(self, reply: ChatReply, reservation: Reservation, seconds: float) -> Answer:
        usage = Usage(
            calls=1,
            prompt_tokens=reply.prompt_tokens,
            cached_tokens=reply.cached_tokens,
            completion_tokens=reply.completion_tokens,
            latency_seconds=seconds,
        )
        cost = self.budget.cost_of(usage)
        if cost is not None and not reply.prompt_tokens:
            cost = reservation.cost  # the server doesn't say what it counted
        self.budget.settle(reservation, cost)
        usage = replace(usage, cost=cost)
        self.statistics.answered += 1
        self.statistics.usage = self.statistics.usage + usage
        return Answer(reply, usage)

    def _report(self, failure: CallFailedError) -> None:
        if failure.kind.trips_circuit:
            self.breaker.failed(at_once=failure.kind is FailureKind.QUOTA)
        elif failure.kind is FailureKind.RATE:
            self.breaker.abandoned()
        else:
            self.breaker.succeeded()

    def _give_up(self, failure: CallFailedError) -> InvalidInputError:
        """The error of every further call, too."""
        if self._fatal is None:
            where = self.settings.endpoint.url
            todo = (
                "set the right key in the environment: HALLUJUDGE_LLM_API_KEY is the judge's, "
                "HALLUJUDGE_FALLBACK_API_KEY the fallback's"
                if failure.kind is FailureKind.AUTH
                else f"check the address and the model name {self.settings.model!r}"
            )
            self._fatal = InvalidInputError(
                f"the judge at {where} can't be used: {failure.detail}; {todo}",
                reason=failure.kind.value,
                metadata={"url": where, "model": self.settings.model},
            )
        return self._fatal


_MESSAGE_TOKENS = 16


def _most_prompt_tokens(request: ChatRequest) -> int:
    """No tokeniser makes more tokens than bytes; a chat template adds a few to each message."""
    texts = [message["content"] for message in request.messages]
    if request.schema is not None:
        texts.append(json.dumps(request.schema))
    return sum(len(text.encode("utf-8", "replace")) + _MESSAGE_TOKENS for text in texts)


def _counted(failure: CallFailedError, attempts: int) -> CallFailedError:
    if attempts == 1:
        return failure
    return CallFailedError(
        failure.kind,
        f"{failure.detail} ({attempts} attempts)",
        retry_after=failure.retry_after,
    )
