"""How many calls a judge's server gets at once, and when its rate limits pause all of them."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from ..fair_queue import FairQueue
from ..tenancy import Flight, tenancy
from .chat import ChatRequest
from .failures import CallFailedError, FailureKind

_LOG = logging.getLogger(__name__)
_LOG_EVERY = 30.0
# From the begin of a pause to the first probe; to each further one, twice as long.
_FIRST_PROBE = 1.0
# Calls of callers whose own calls were limited are probes later than those of others.
_LATER_PROBE = 0.5
# Of a prompt that is limited while so many times more calls are answered, the limit is its own.
_ANSWERED_FOR_ONE = 10
# Never sent: they say nothing about the server.
_UNSENT = frozenset({FailureKind.CIRCUIT, FailureKind.BUDGET})


class Seen(NamedTuple):
    """What a server has done so far."""

    answered: int
    """Calls that it answered, of those that were sent after the limits under way began."""
    limited: int
    """Calls that it refused by a rate limit."""


class RatePause:
    """Whether the rate limits that a server reports concern all calls, or one prompt alone.

    A limit that names a time pauses all calls. After a second, another prompt is sent as a probe,
    one of another caller if there is one. If it is answered, the limit was that of a prompt: the
    pause ends, and from then on two prompts have to be limited, with no answer in between, until
    all calls are paused again. If the probe is limited too, the limit is that of the account, and
    the next probe is sent after twice the time.

    Args:
        clock: Seconds on a clock that never goes back.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        # Of the limits that no answer to a later call has followed.
        self._prompts: set[int] = set()
        self._callers: set[str] = set()
        self._since: float | None = None
        self._needed = 1
        self._until = self._probe_at = self._paused_at = float("-inf")
        self._step = _FIRST_PROBE
        self._answered = self._limited = 0
        self._last_answered = float("-inf")

    @property
    def left(self) -> float:
        """Seconds until the end of the pause."""
        return max(0.0, self._until - self._clock())

    @property
    def seen(self) -> Seen:
        """What the server has done so far."""
        return Seen(self._answered, self._limited)

    def left_for(self, prompt: Callable[[], int], caller: str) -> float:
        """Return the seconds that a call has to wait; 0 if it may be sent, perhaps as a probe.

        Args:
            prompt: Returns a hash of what it asks.
            caller: Who asks.
        """
        left = self.left
        if not left or prompt() in self._prompts:
            return left
        later = _LATER_PROBE * self._step if caller in self._callers else 0.0
        return min(left, max(0.0, self._probe_at + later - self._clock()))

    def sent(self) -> None:
        """Note that a call is sent; in a pause it is a probe."""
        if self.left:
            self._step *= 2
            self._probe_at = self._clock() + self._step

    def answered(self, started: float) -> bool:
        """Note an answer; return whether it ended a pause.

        Args:
            started: When the call was sent.
        """
        self._last_answered = max(self._last_answered, started)
        if self._since is not None and started < self._since:
            return False  # it may have been let through before the limit
        self._answered += 1
        paused = self.left > 0
        # An answer beside a single limited prompt shows that the limit may be a prompt's own.
        if paused or len(self._prompts) == 1:
            self._needed = 2
        self._until, self._since = float("-inf"), None
        self._prompts.clear()
        self._callers.clear()
        return paused

    def limited(self, started: float, prompt: int, caller: str, retry_after: float | None) -> bool:
        """Note a rate limit; return whether it concerns all calls, as far as is known.

        Args:
            started: When the call was sent.
            prompt: A hash of what it asked.
            caller: Who asked.
            retry_after: Seconds for which the server asked not to be called.
        """
        now = self._clock()
        self._limited += 1
        if self._since is None:
            self._since = now
        if self.left and started >= self._paused_at and prompt not in self._prompts:
            self._needed = 1  # the probe was limited too
        self._prompts.add(prompt)
        self._callers.add(caller)
        if len(self._prompts) < self._needed:
            return False
        # A limit without a time lowers the number of calls at once, and pauses none.
        if retry_after is not None:
            if not self.left:
                self._paused_at, self._step = now, _FIRST_PROBE
                self._probe_at = now + _FIRST_PROBE
            self._until = max(self._until, now + retry_after)
        return True

    def is_own(self, before: Seen, own: int) -> bool:
        """Return whether a call's limits are those of its prompt: the others are answered.

        Args:
            before: What was seen at its first limit.
            own: How often it was limited after that.
        """
        answered = self._answered - before.answered
        others = self._limited - before.limited - own
        return answered > 0 and answered >= _ANSWERED_FOR_ONE * others

    def answered_after(self, started: float) -> bool:
        """Return whether a call that was sent after a moment is answered already."""
        return self._last_answered >= started


class AdaptiveLimiter:
    """Additive increase, multiplicative decrease, and a pause for all calls.

    Only rate limits lower it; other failures say nothing about the server's capacity. Calls that
    were under way when it was lowered do not lower it again: they were made at the old rate.

    Args:
        most: Calls at the same time at most.
        clock: Seconds on a clock that never goes back.
        name: The server, for the log.
        longest_wait: Longest pause that the server may ask for, in seconds.
    """

    def __init__(
        self,
        most: int,
        clock: Callable[[], float],
        *,
        name: str = "judge",
        longest_wait: float = 60.0,
    ) -> None:
        self._most = most
        self._limit = float(most)
        self._clock = clock
        self._name = name
        self._longest_wait = longest_wait
        self._queue = FairQueue(most)
        self._shrunk_at = float("-inf")
        self._logged_at = float("-inf")
        self.pause = RatePause(clock)
        """Whether the server asked not to be called."""

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
    def paused(self) -> str:
        """Why all calls wait, in one sentence; empty if they don't."""
        if not (left := self.pause.left):
            return ""
        return (
            f"{self._name} answered HTTP 429 and asked not to be called: all calls wait, for "
            f"{left:.0f} s at most; another prompt is tried before"
        )

    @asynccontextmanager
    async def place(
        self, request: ChatRequest, sleep: Callable[[float], Awaitable[None]]
    ) -> AsyncIterator[float]:
        """Wait until a call may be sent; provide the time. The block's outcome is the call's.

        Callers get places in turn, however many calls each of them waits with. Calls that are held
        back leave theirs to others.

        Args:
            request: What is asked.
            sleep: Waits for seconds.

        Raises:
            UnauthenticatedError: The caller's key was revoked, or has expired.
            PermissionDeniedError: It may no longer call language models.
        """
        started = await self._entered(request, sleep)
        try:
            yield started
        except CallFailedError as err:
            if err.kind is FailureKind.RATE:
                self._limited(started, request, err)
            elif not err.kind.is_outage and err.kind not in _UNSENT:
                self._answered(started)
            raise
        else:
            self._answered(started)
        finally:
            tenancy().flight.lands()
            # Before the place is left, so that a lowered limit does not let the next call in.
            self._queue.resize(self.limit)
            self._queue.leave(tenancy().user.id)

    async def _entered(
        self, request: ChatRequest, sleep: Callable[[float], Awaitable[None]]
    ) -> float:
        flight = tenancy().flight
        while True:
            await tenancy().gate.leave()
            flight.waits()
            if not await flight.ready():  # without a place, which others can use
                continue
            user = tenancy().user
            await self._queue.enter(user.id, cost=1.0, weight=user.limits.weight)
            may_send = False
            try:
                # A place from before the end of a pause is given back: the rate limit is the
                # account's, and after a pause all callers take turns from the start.
                if (wait := self.pause.left_for(lambda: prompt_of(request), user.id)) > 0:
                    await sleep(wait)
                else:
                    may_send = await _may_send(flight)
            finally:
                if not may_send:
                    self._queue.leave(user.id)
            if may_send:
                self.pause.sent()
                return self._clock()

    def _answered(self, started: float) -> None:
        # One more for each round of calls that were answered, as TCP's congestion avoidance.
        self._limit = min(self._most, self._limit + 1.0 / max(1.0, self._limit))
        if self.pause.answered(started):
            _LOG.warning("%s answered another prompt; calls go on", self._name)

    def _limited(self, started: float, request: ChatRequest, failure: CallFailedError) -> None:
        seconds = failure.retry_after
        # A longer wait fails its call and opens the circuit (RetryPolicy.asks_too_long).
        heeded = seconds if seconds is not None and seconds <= self._longest_wait else None
        caller = tenancy().user.id
        if not self.pause.limited(started, prompt_of(request), caller, heeded):
            return
        if started >= self._shrunk_at:
            self._limit = max(1.0, self._limit / 2)
            self._shrunk_at = self._clock()
        if (paused := self.paused) and self._clock() - self._logged_at >= _LOG_EVERY:
            self._logged_at = self._clock()
            _LOG.warning("%s", paused)


async def _may_send(flight: Flight) -> bool:
    """Return whether the running task may send its call now, and note that it does."""
    tenancy().user_now().require_judging()
    if not await flight.takes_off():
        return False
    if tenancy().gate.is_closed:
        flight.lands()
        return False
    return True


def prompt_of(request: ChatRequest) -> int:
    """Return what makes two calls ask the same."""
    # Compared within this process only, so Python's own hash is enough.
    return hash(str(request.messages))
