"""When a call is repeated, what is an outage, and how long it is waited for."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from msgspec import Struct

from ..errors import UnavailableError
from .budget import Usage
from .chat import ChatRequest
from .chat_servers import ChatServer, next_server
from .circuits import ByCaller, Outage
from .failures import CallFailedError, FailureKind
from .protocols import Exchange
from .rate_limits import Seen

_LOG = logging.getLogger(__name__)
# Waits of a few seconds are normal; longer ones are logged, but not for every call.
_LOG_AFTER = 5.0
_LOG_EVERY = 30.0


class RetryPolicy(Struct, frozen=True, kw_only=True):
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
    start_seconds: float | None = None
    """How long an address that was never reached is waited for; None for ``give_up_after``."""
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
        # Jitter is only added: before the time that the server named it would refuse again.
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

    asked: ChatRequest
    request: ChatRequest
    """The same with the limit of tokens that is sent."""
    exchange: Exchange
    """Sends it and reads the reply."""
    has_fallback: bool
    """Whether another judge is asked if this one fails."""
    servers: Sequence[ChatServer]
    """The judge's servers, the preferred one first."""
    takes_room: bool = True
    """Whether it gets room for a thought, where the judge thinks."""
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
    limits_before: Seen | None = None
    """What its server had done when it was first limited."""
    limits: int = 0
    """How often it was limited after that."""
    restarts: int = 0
    """How often its supervised server had ended when it was sent."""
    ends: int = 0
    """How often its supervised server ended while it was under way."""

    def __post_init__(self) -> None:
        self.server = self.servers[0]


@dataclass(slots=True)
class CallStatistics:
    """What a client did so far, failed calls included."""

    calls: int = 0
    """Calls sent."""
    answered: int = 0
    """Calls answered."""
    retries: int = 0
    """Calls that repeated an earlier one."""
    reused: int = 0
    """How often the verdict cache had a reply, so that no call was made."""
    failures: Counter[str] = field(default_factory=Counter)
    """Failed calls by kind."""
    usage: Usage = field(default_factory=Usage)
    """What all answers took."""


class _Waits:
    """What has calls wait for a judge.

    Args:
        judge: The judge in words, for messages.
        policy: How often calls are made, and how long an outage is waited for.
        outages: Each caller's failures since the judge last answered it.
        tools: Clock, randomness and sleep.
        role: What messages call it.
    """

    def __init__(
        self,
        judge: str,
        policy: RetryPolicy,
        outages: ByCaller[Outage],
        tools: Tools,
        role: str,
    ) -> None:
        self._judge, self._role = judge, role
        self._policy = policy
        self._outages = outages
        self._tools = tools


class Patience(_Waits):
    """Decides after each failure whether a call is made again, and waits until then."""

    _logged_at = float("-inf")

    @property
    def _outage(self) -> Outage:
        return self._outages.mine

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
        if failure.kind is FailureKind.RATE:
            # What is seen at the first limit includes it, so that only later ones are counted.
            call.limits += call.limits_before is not None
            call.limits_before = call.limits_before or call.server.limiter.pause.seen
        if self._is_final(call, failure):
            raise _final(call.cause, failure, call.attempts) from failure

    def _is_final(self, call: Call, failure: CallFailedError) -> bool:
        retry = self._policy
        if not failure.kind.is_transient or retry.attempts == 1 or retry.asks_too_long(failure):
            return True
        used_up, impatient = call.attempts >= retry.attempts, self._patience(call) <= 0
        if failure.kind is FailureKind.RATE:
            # Most limits are the account's. That of a prompt is known by the others' answers.
            before = call.limits_before
            own = before and call.server.limiter.pause.is_own(before, call.limits)
            return (impatient and used_up) or bool(own and (used_up or impatient))
        assert call.troubled_at is not None
        # While others are answered, the request itself is the likely cause.
        alone = self._outage.answered_since(call.troubled_at)
        # A server that replies is not down, however odd the reply, so attempts alone end such a
        # call.
        return used_up and (alone or impatient or failure.kind is FailureKind.BAD_REPLY)

    def _patience(self, call: Call) -> float:
        """Seconds for which a call still waits for an outage to end."""
        if self._is_hopeless:
            return 0.0
        now = self._tools.clock()
        waited = now - (now if call.troubled_at is None else call.troubled_at)
        # An outage is waited for once, not once by each call, where another judge can answer.
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
            f"{self._role} {self._judge}: no answer for {waited:.0f} s ({cause.detail}); "
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
        start = self._policy.start_seconds
        # Nothing listens at an address that is mistyped, and waiting does not mend that.
        if (
            start is not None
            and failure.kind is FailureKind.CONNECTION
            and not self._outage.answers
        ):
            left = start - self._outage.seconds_without_answer
            if left <= 0:
                raise self._never_reached(failure)
        if left <= 0:
            raise self._no_progress(call, failure)
        self._log_wait()
        if failure.kind is FailureKind.CIRCUIT:
            most = min(left, self._patience(call)) if call.has_fallback else left
            # Nothing is sent until a probe may pass, so the circuit's own time is waited for.
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

    def _never_reached(self, failure: CallFailedError) -> UnavailableError:
        return UnavailableError(
            f"{self._role} {self._judge} can't be reached: {failure.detail}. Start its server, or "
            "correct llm.url",
            reason="JUDGE_UNREACHABLE",
            metadata={"judge": self._judge, "cause": failure.kind.value},
        )

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
            f"{self._role} {self._judge} answered no call for {seconds:g} s: {cause.detail}; "
            f"calls answered before: {self._outage.answers}. {check}Start the run again when the "
            f"{self._role} answers; calls that are in the verdict cache are not repeated",
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


_MOST_ENDS = 3
"""How often a server may end under one call, which may be what ends it."""
# How calls fail at a server that ends or hangs.
_OF_A_RESTART = frozenset(
    {
        FailureKind.CIRCUIT,
        FailureKind.CONNECTION,
        FailureKind.NOT_THE_API,
        FailureKind.SERVER,
        FailureKind.TIMEOUT,
    }
)


class Restarts(_Waits):
    """Has calls wait for a supervised server, and tells which of them failed because it ended."""

    async def wait(self, call: Call) -> None:
        """Wait while the call's server is known to be down.

        Raises:
            UnavailableError: It does not serve again in time, and no other judge is asked.
            CallFailedError: The same, where another judge is asked.
        """
        supervision = call.server.endpoint.supervision
        if supervision is None or not supervision.is_down:
            return
        # A restart takes minutes; where another judge can answer, an outage's time is enough.
        most = self._policy.outage_seconds if call.has_fallback else supervision.most_seconds
        why = await supervision.served(self._tools.sleep, most)
        if why and call.has_fallback:
            raise CallFailedError(FailureKind.CONNECTION, why)
        if why:
            judge = f"{self._role} {self._judge}"
            raise UnavailableError(
                f"{judge}: {why}. Calls that are in the verdict cache are not repeated",
                reason="JUDGE_NO_PROGRESS",
                metadata={"judge": judge, "cause": FailureKind.CONNECTION.value},
            )
        self._outages.mine.forget()
        call.server.circuits.succeeded()

    def note(self, call: Call) -> None:
        """Note that a call is about to be sent.

        Raises:
            CallFailedError: Its server ended while it waited for its turn.
        """
        supervision = call.server.endpoint.supervision
        if supervision is None:
            return
        if supervision.is_down:
            raise CallFailedError(FailureKind.CIRCUIT, f"not sent: {supervision.name} is down")
        call.restarts = supervision.restarts

    async def caused(self, call: Call, failure: CallFailedError) -> bool:
        """Return whether a call failed because its server ended or hung; it is not counted then.

        Raises:
            CallFailedError: The server ended under this call several times, maybe because of it.
        """
        supervision = call.server.endpoint.supervision
        if supervision is None or failure.kind not in _OF_A_RESTART:
            return False
        if failure.kind is FailureKind.CIRCUIT:
            return supervision.is_down
        if not await supervision.ended_since(call.restarts, self._tools.sleep):
            return False
        # The end of the server is not a failure of this call, unless it happens again and again.
        call.attempts -= 1
        call.ends += 1
        if call.ends == _MOST_ENDS:
            raise CallFailedError(
                FailureKind.CONNECTION,
                f"{supervision.name} ended {_MOST_ENDS} times while it had this call: "
                f"{failure.detail}",
            ) from failure
        return True
