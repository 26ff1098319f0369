"""When a call is sent, where, and when it is repeated.

Retries and outages, the choice of a server, circuit breakers, and limits of concurrent calls.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from random import Random

from ..access.caller import current_caller
from ..access.fair_queue import FairQueue
from ..errors import UnavailableError
from .batch_files import BatchFiles
from .chat import ChatRequest
from .failures import CallFailedError, FailureKind
from .http import Endpoint, HttpEndpoint

_LOG = logging.getLogger(__name__)
_FIRST_SECONDS = 1.0
# Waits of a few seconds are normal; longer ones are logged, but not for every call.
_LOG_AFTER = 5.0
_LOG_EVERY = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often, how long and after which waits a call is made again.

    A call is made ``attempts`` times while other calls are answered. While no call is answered, the
    judge is taken to be down, and its calls are repeated for ``outage_seconds``. A run that got no
    answer for ``give_up_after`` seconds ends.

    The wait before retry ``n`` is drawn evenly from ``[0, base * 2**n]``, at most
    ``longest_backoff`` seconds ("full jitter"). A Retry-After header is waited for with a little
    jitter added, unless it is longer than ``longest_wait``.
    """

    attempts: int = 5
    """Calls in all, the first included; 1 for no repetition."""
    outage_seconds: float = 90.0
    """How long an outage is waited for, counted from a call's first failure."""
    give_up_after: float = 300.0
    """Seconds without any answer after which the run ends."""
    base_seconds: float = 0.5
    """Upper end of the first wait."""
    longest_backoff: float = 8.0
    """Longest wait that this policy chooses, in seconds."""
    longest_wait: float = 60.0
    """Longest Retry-After that is waited for, in seconds."""

    def wait_before_next(self, failure: CallFailedError, attempt: int, random: float) -> float:
        """Return the seconds to wait before the next call.

        Args:
            failure: What went wrong.
            attempt: Calls made so far, at least 1.
            random: A number in [0, 1).
        """
        # Beyond 2**10 the backoff is at its longest anyway, and the power must not overflow.
        backoff = min(self.longest_backoff, self.base_seconds * 2.0 ** min(attempt - 1, 10))
        if failure.retry_after is None:
            return backoff * random
        return failure.retry_after + 0.1 * random * max(backoff, failure.retry_after)

    def asks_too_long(self, failure: CallFailedError) -> bool:
        """Whether the server asked to wait longer than this policy does."""
        return failure.retry_after is not None and failure.retry_after > self.longest_wait


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """Clock, randomness and sleep; tests pass their own."""

    clock: Callable[[], float] = time.monotonic
    """Seconds on a clock that never goes back."""
    random: Callable[[], float] = field(default_factory=lambda: Random().random)  # noqa: S311
    """Numbers in [0, 1), for jitter."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Waits."""


@dataclass(slots=True, kw_only=True)
class Call:
    """One request on its way to an answer."""

    request: ChatRequest
    """What is asked."""
    body: dict[str, object]
    """What is sent."""
    has_fallback: bool
    """Whether another judge is asked if this one fails."""
    servers: Sequence[ChatServer]
    """The judge's servers, the preferred one first."""
    server: ChatServer = field(init=False)
    """The server that it is sent to now."""
    failed_at: list[ChatServer] = field(default_factory=list)
    """Servers that seemed to be down since it last waited."""
    attempts: int = 0
    """How often it was sent."""
    cause: CallFailedError | None = None
    """Its first failure."""
    troubled_at: float | None = None
    """When it first failed, or could not be sent."""

    def __post_init__(self) -> None:
        self.server = self.servers[0]


class Patience:
    """Decides after each failure whether a call is made again, and waits until then.

    Args:
        judge: The judge in words, for messages.
        policy: How often and how long.
        outage: The failures since the judge last answered.
        tools: Clock, randomness and sleep.
    """

    def __init__(
        self,
        *,
        judge: str,
        policy: RetryPolicy,
        outage: Outage,
        tools: Tools,
    ) -> None:
        self._judge = judge
        self._policy = policy
        self._outage = outage
        self._tools = tools
        self._logged_at = float("-inf")

    def note(self, call: Call, failure: CallFailedError) -> None:
        """Remember a failure of a call.

        Raises:
            CallFailedError: The call is not made again.
        """
        if call.troubled_at is None:
            call.troubled_at = self._tools.clock()
        if failure.kind is FailureKind.CIRCUIT:
            # What was not sent cannot be the cause: it waits as long as the run does, unless
            # another judge can answer it.
            if self._patience(call) <= 0 and (call.has_fallback or self._is_hopeless):
                raise failure
            return
        call.cause = call.cause or failure
        if self._is_final(call, failure):
            raise _final(call.cause, failure, call.attempts) from failure

    def _is_final(self, call: Call, failure: CallFailedError) -> bool:
        retry = self._policy
        if not failure.kind.is_transient or retry.attempts == 1 or retry.asks_too_long(failure):
            return True
        if call.attempts < retry.attempts:
            return False
        assert call.troubled_at is not None
        others = self._outage.answered_since(call.troubled_at)
        # While others are answered, the request itself is the likely cause; a rate limit is not.
        alone = others and failure.kind is not FailureKind.RATE
        if alone or failure.kind is FailureKind.BAD_REPLY:
            return True
        return self._patience(call) <= 0

    def _patience(self, call: Call) -> float:
        """Seconds for which a call still waits for an outage to end."""
        if self._is_hopeless:
            return 0.0
        now = self._tools.clock()
        waited = now - (now if call.troubled_at is None else call.troubled_at)
        if call.has_fallback:
            waited = max(waited, self._outage.seconds)
        return self._policy.outage_seconds - waited

    @property
    def _is_hopeless(self) -> bool:
        """Whether waiting for the end of the outage is pointless, or not wanted."""
        return not self._policy.outage_seconds or self.turned_away is not None

    @property
    def turned_away(self) -> CallFailedError | None:
        """The failure by which the server refuses calls for long, or until it is paid; or None."""
        cause = self._outage.cause
        if cause is None:
            return None
        final = cause.kind is FailureKind.QUOTA or self._policy.asks_too_long(cause)
        return cause if final else None

    @property
    def waiting(self) -> str:
        """What calls wait for, in one sentence; empty if they are answered or fail for good."""
        waited, cause = self._outage.seconds_without_answer, self._outage.cause
        if cause is None or not self._outage.calls or waited < _LOG_AFTER:
            return ""
        left = max(0.0, self._policy.give_up_after - waited)
        return (
            f"judge {self._judge}: no answer for {waited:.0f} s ({cause.detail}); "
            f"calls answered so far: {self._outage.answers}; trying again, giving up in "
            f"{left:.0f} s"
        )

    async def wait(self, call: Call, failure: CallFailedError) -> None:
        """Wait until a call may be made again.

        Raises:
            UnavailableError: No call was answered for too long, and no other judge is asked.
            CallFailedError: The same, where another judge is asked.
        """
        left = self._policy.give_up_after - self._outage.seconds_without_answer
        if left <= 0:
            raise self._no_progress(call, failure)
        self._log_wait()
        if failure.kind is FailureKind.CIRCUIT:
            most = min(left, self._patience(call)) if call.has_fallback else left
            await next_server(call.servers).breaker.wait(self._tools.sleep, most)
            return
        random = self._tools.random()
        wait = self._policy.wait_before_next(failure, call.attempts, random)
        await self._tools.sleep(min(wait, left))

    def _log_wait(self) -> None:
        """Log why nothing moves: after a few seconds, then every half minute."""
        now = self._tools.clock()
        if (waiting := self.waiting) and now - self._logged_at >= _LOG_EVERY:
            self._logged_at = now
            _LOG.warning("%s", waiting)

    def _no_progress(
        self, call: Call, failure: CallFailedError
    ) -> CallFailedError | UnavailableError:
        cause = call.cause or self._outage.cause or failure
        seconds = self._policy.give_up_after
        if call.has_fallback:
            return cause.with_detail(f"{cause.detail} (no answer for {seconds:g} s)")
        foreign = cause.kind is FailureKind.NOT_THE_API
        check = "Check that the address is that of an OpenAI-compatible API. " if foreign else ""
        return UnavailableError(
            f"judge {self._judge} answered no call for {seconds:g} s: {cause.detail}; "
            f"calls answered before: {self._outage.answers}. {check}Start the run again when the "
            "judge answers; calls that are in the verdict cache are not repeated",
            reason="JUDGE_NO_PROGRESS",
            metadata={"judge": self._judge, "cause": cause.kind.value},
        )


def _final(cause: CallFailedError, last: CallFailedError, attempts: int) -> CallFailedError:
    """The failure of a call, with its first cause and how often it was made."""
    detail = cause.detail
    if last.detail != cause.detail:
        detail = f"{detail}; then {last.detail}"
    if attempts > 1:
        detail = f"{detail} ({attempts} attempts)"
    return last.with_detail(detail)


class Outage:
    """The failures since a judge last answered.

    Args:
        clock: Seconds on a clock that never goes back.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.calls = 0
        """Calls that a caller waits for."""
        self._busy_since = clock()
        self._answered_at = float("-inf")
        self.answers = 0
        """Calls answered so far."""
        self._since = clock()
        self.cause: CallFailedError | None = None
        """The first failure since the last answer; None if there was none."""

    @property
    def seconds(self) -> float:
        """Seconds since the first failure that no answer followed; 0 if there is none."""
        return 0.0 if self.cause is None else self._clock() - self._since

    @property
    def seconds_without_answer(self) -> float:
        """Seconds for which calls have been waiting without any answer."""
        return self._clock() - max(self._answered_at, self._busy_since)

    def answered_since(self, moment: float) -> bool:
        """Whether the judge answered any call after a moment."""
        return self._answered_at > moment

    def call_begins(self) -> None:
        """Note that a caller waits for an answer."""
        if not self.calls:
            self._busy_since = self._clock()
        self.calls += 1

    def call_ends(self) -> None:
        """Note that a caller no longer waits."""
        self.calls -= 1

    def answered(self) -> None:
        """Note that the judge answered, if only to reject a request."""
        self.answers += 1
        self._answered_at = self._clock()
        self.cause = None

    def failed(self, failure: CallFailedError) -> None:
        """Note a failure that may be the judge's own trouble."""
        if self.cause is None:
            self.cause, self._since = failure, self._clock()


class ChatServer:
    """One server of a judge.

    Calls with the same affinity go to the same server, so that its prefix cache holds what their
    prompts have in common. A server that is down is passed over until it answers again.

    Args:
        endpoint: Where it is.
        http: Sends calls.
        breaker: Its circuit.
        limiter: How many calls it gets at the same time.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        http: HttpEndpoint | BatchFiles,
        breaker: CircuitBreaker,
        limiter: AdaptiveLimiter,
    ) -> None:
        self.endpoint = endpoint
        self.http = http
        self.breaker = breaker
        self.limiter = limiter

    @classmethod
    def of(
        cls,
        endpoint: Endpoint,
        *,
        max_concurrency: int,
        circuit_threshold: int,
        circuit_seconds: float,
        clock: Callable[[], float],
        offline: BatchFiles | None = None,
    ) -> ChatServer:
        """Return the server at an endpoint.

        Args:
            endpoint: Where it is.
            max_concurrency: Calls at the same time at most.
            circuit_threshold: Failures in a row after which it is not called for a while.
            circuit_seconds: How long it is not called at most.
            clock: Seconds on a clock that never goes back.
            offline: Files in place of the server.
        """
        return cls(
            endpoint,
            offline or HttpEndpoint(endpoint, max_concurrency),
            CircuitBreaker(circuit_threshold, circuit_seconds, clock),
            AdaptiveLimiter(max_concurrency, clock),
        )

    @property
    def is_down(self) -> bool:
        """Whether the server has failed so often that it is not called for now."""
        return self.breaker.state == "open"


def preferred(servers: Sequence[ChatServer], affinity: str) -> list[ChatServer]:
    """Return the servers in the order in which calls with an affinity use them.

    Rendezvous hashing: every process finds the same order, and a server that is added or left out
    moves no call between the others.

    Args:
        servers: All servers.
        affinity: What the calls have in common.
    """
    if len(servers) == 1:
        return list(servers)

    def weight(server: ChatServer) -> bytes:
        return sha256(f"{server.endpoint.url}\0{affinity}".encode("utf-8", "replace")).digest()

    return sorted(servers, key=weight)


def next_server(order: Iterable[ChatServer]) -> ChatServer:
    """Return the first server that is not down, or the one that is called again the soonest."""
    servers = list(order)
    up = (server for server in servers if not server.is_down)
    return next(up, min(servers, key=lambda server: server.breaker.seconds_left))


class CircuitBreaker:
    """Closed, open, or half-open.

    Closed: calls pass, and failures in a row are counted. Open, after ``threshold`` failures: no
    call passes for one second, then two, four and so on up to ``open_seconds``. Half-open, after
    each of these times: one call passes as a probe; it closes the circuit or opens it again.

    Args:
        threshold: Failures in a row that open the circuit.
        open_seconds: How long it stays open at most.
        clock: Seconds on a clock that never goes back.
    """

    def __init__(self, threshold: int, open_seconds: float, clock: Callable[[], float]) -> None:
        self._threshold = threshold
        self._longest = open_seconds
        self._clock = clock
        self._failures = 0
        self._openings = 0
        self._open_until: float | None = None
        self._probing = False
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def state(self) -> str:
        """``closed``, ``open`` or ``half-open``."""
        if self._open_until is None:
            return "closed"
        return "open" if self.seconds_left > 0 else "half-open"

    @property
    def seconds_left(self) -> float:
        """Seconds until a probe may pass; 0 if one may pass now."""
        if self._open_until is None:
            return 0.0
        return max(0.0, self._open_until - self._clock())

    def try_pass(self) -> bool:
        """Whether a call may be made now. A caller that passes reports its outcome."""
        if self._open_until is None:
            return True
        if self._probing or self.seconds_left > 0:
            return False
        self._probing = True
        return True

    async def wait(self, sleep: Callable[[float], Awaitable[None]], at_most: float) -> None:
        """Wait until the circuit may have changed.

        Args:
            sleep: Waits for seconds.
            at_most: Longest wait in seconds; a probe under way is waited for in any case.
        """
        if self._open_until is None:
            return
        if not self._probing:
            await sleep(min(self.seconds_left, at_most))
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        await turn

    def succeeded(self) -> None:
        """Note that the server answered."""
        self._failures = self._openings = 0
        self._open_until = None
        self._probe_is_back()

    def failed(self, *, at_once: bool = False) -> None:
        """Note that the server is in trouble.

        Args:
            at_once: Open the circuit without counting, as for an account without credit.
        """
        self._failures += 1
        if self._probing or (
            self._open_until is None and (at_once or self._failures >= self._threshold)
        ):
            seconds = min(self._longest, _FIRST_SECONDS * 2.0 ** min(self._openings, 20))
            self._openings += 1
            self._open_until = self._clock() + (self._longest if at_once else seconds)
        self._probe_is_back()

    def abandoned(self) -> None:
        """Note that a call ended without news of the server, for example by cancellation."""
        self._probe_is_back()

    def _probe_is_back(self) -> None:
        self._probing = False
        waiting, self._waiting = self._waiting, []
        for turn in waiting:
            if not turn.done():
                turn.set_result(None)


class AdaptiveLimiter:
    """Additive increase, multiplicative decrease, and a pause for all calls.

    Only rate limits lower it; other failures say nothing about the server's capacity. Calls that
    were under way when it was lowered do not lower it again: they were made at the old rate.

    Args:
        most: Calls at the same time at most.
        clock: Seconds on a clock that never goes back.
    """

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        self._most = most
        self._limit = float(most)
        self._clock = clock
        self._queue = FairQueue(most)
        self._shrunk_at = float("-inf")
        self._paused_until = float("-inf")

    @property
    def limit(self) -> int:
        """Calls that may be made at the same time now."""
        return int(self._limit)

    @property
    def running(self) -> int:
        """Calls under way."""
        return self._queue.inside

    @property
    def waiting(self) -> int:
        """Calls that wait for a place."""
        return self._queue.waiting

    @property
    def pause_left(self) -> float:
        """Seconds for which the server asked not to be called."""
        return max(0.0, self._paused_until - self._clock())

    async def acquire(self) -> float:
        """Wait for a free place and return the time, for :meth:`release`.

        Callers get places in turn, however many calls each of them waits with.
        """
        caller = current_caller()
        await self._queue.enter(caller.id, cost=1.0, weight=caller.limits.weight)
        return self._clock()

    def release(self, started: float, *, limited: bool, retry_after: float | None = None) -> None:
        """Free a place.

        Args:
            started: The return value of :meth:`acquire`.
            limited: Whether the server reported a rate limit.
            retry_after: Seconds for which it asked not to be called.
        """
        if limited:
            self._shrink(started, retry_after)
        else:
            # One more for each round of calls that were answered, as TCP's congestion avoidance.
            self._limit = min(self._most, self._limit + 1.0 / max(1.0, self._limit))
        self._queue.resize(self.limit)
        self._queue.leave(current_caller().id)

    def _shrink(self, started: float, retry_after: float | None) -> None:
        if started >= self._shrunk_at:
            self._limit = max(1.0, self._limit / 2)
            self._shrunk_at = self._clock()
        if retry_after is not None:
            self._paused_until = max(self._paused_until, self._clock() + retry_after)
