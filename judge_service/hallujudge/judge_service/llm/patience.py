"""Whether and when a failed call is made again: attempts, outages, and the end of patience."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from ..errors import UnavailableError
from .chat import ChatRequest
from .failures import CallFailedError, FailureKind
from .outage import Outage
from .retry import RetryPolicy
from .servers import ChatServer, next_server

__all__ = ["Call", "Patience", "Tools"]

_LOG = logging.getLogger(__name__)

_TOLD_AFTER = 5.0
_TOLD_EVERY = 30.0


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
        self._told_at = float("-inf")

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
        """The server's word that it takes no calls for long, or without payment; None: none."""
        cause = self._outage.cause
        if cause is None:
            return None
        final = cause.kind is FailureKind.QUOTA or self._policy.asks_too_long(cause)
        return cause if final else None

    @property
    def waiting(self) -> str:
        """What calls wait for, in one sentence; empty: they are answered, or fail for good."""
        waited, cause = self._outage.seconds_without_answer, self._outage.cause
        if cause is None or not self._outage.calls or waited < _TOLD_AFTER:
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
        self._tell()
        if failure.kind is FailureKind.CIRCUIT:
            most = min(left, self._patience(call)) if call.has_fallback else left
            await next_server(call.servers).breaker.wait(self._tools.sleep, most)
            return
        random = self._tools.random()
        wait = self._policy.wait_before_next(failure, call.attempts, random)
        await self._tools.sleep(min(wait, left))

    def _tell(self) -> None:
        """Log why nothing moves: after a few seconds, then every half minute."""
        now = self._tools.clock()
        if (waiting := self.waiting) and now - self._told_at >= _TOLD_EVERY:
            self._told_at = now
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
