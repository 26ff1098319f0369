"""What keeps calls from a judge's server: open circuits, rejections, restarts and outages.

A rejected key, an unknown model or other settings end a run whose judge never answered.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar

from ..tenancy import tenancy
from .failures import CallFailedError

# How long a circuit is open at first; each further opening is twice as long.
_FIRST_SECONDS = 1.0
# Two may have prompts that fail for themselves; a third one's failure is the server's.
_CALLERS_OF_AN_OUTAGE = 3
MAX_CALLERS = 1024
"""Callers beyond this many are forgotten, unless something of theirs is under way."""


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
    def is_idle(self) -> bool:
        """Whether there is nothing to remember."""
        return not self._failures and self._open_until is None

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
        # A probe is under way, and what it finds decides; waiting for a time would only be a guess.
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
        # Calls that were under way when the circuit opened say nothing new, so they do not prolong
        # it.
        if self._probing or (
            self._open_until is None and (at_once or self._failures >= self._threshold)
        ):
            # The bound on the power keeps it from overflowing.
            seconds = min(self._longest, _FIRST_SECONDS * 2.0 ** min(self._openings, 20))
            self._openings += 1
            # Used-up credit, or a server that names a long time, is not back within a second.
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


class _Forgettable(Protocol):
    @property
    def is_idle(self) -> bool: ...


_F = TypeVar("_F", bound=_Forgettable)


class ByCaller(Generic[_F]):
    """What is kept for each caller, so that one caller's failures slow that caller's calls only.

    Args:
        make: Makes the value of a new caller.
    """

    def __init__(self, make: Callable[[], _F]) -> None:
        self._make = make
        self._values: dict[str, _F] = {}

    @property
    def mine(self) -> _F:
        """The value of the running task's caller."""
        caller = tenancy().user.id
        value = self._values.get(caller)
        if value is None:
            if len(self._values) >= MAX_CALLERS:
                busy = {key: kept for key, kept in self._values.items() if not kept.is_idle}
                self._values = busy
            value = self._values[caller] = self._make()
        return value

    @property
    def all(self) -> list[_F]:
        """The values of all callers."""
        return list(self._values.values())


class Circuits:
    """The circuits of one server: each caller's own, and one of all callers.

    One caller's prompts may fail for themselves, and then open that caller's circuit only. Once
    calls of three callers have failed in a row, the server is taken to be down for all callers.
    They then share one probe at a time, until one is answered.

    Args:
        threshold: Failures in a row that open a caller's circuit.
        open_seconds: How long a circuit stays open at most.
        clock: Seconds on a clock that never goes back.
    """

    def __init__(self, threshold: int, open_seconds: float, clock: Callable[[], float]) -> None:
        self._of_callers = ByCaller(lambda: CircuitBreaker(threshold, open_seconds, clock))
        # One failure is enough here, because it is counted after three callers have failed.
        self._of_all = CircuitBreaker(1, open_seconds, clock)
        self._failing: set[str] = set()

    @property
    def mine(self) -> CircuitBreaker:
        """The circuit that the running task's calls pass."""
        # While the server is down for all, callers share one probe, not one each.
        return self._of_callers.mine if self._of_all.state == "closed" else self._of_all

    @property
    def is_any_open(self) -> bool:
        """Whether the circuit of any caller, or that of all, is open."""
        return any(one.state == "open" for one in (self._of_all, *self._of_callers.all))

    def succeeded(self) -> None:
        """Note that the server answered the running task's caller."""
        self._failing.clear()
        self._of_callers.mine.succeeded()
        self._of_all.succeeded()

    def failed(self, *, at_once: bool = False) -> None:
        """Note that the server failed the running task's caller.

        Args:
            at_once: Open the caller's circuit without counting.
        """
        self._of_callers.mine.failed(at_once=at_once)
        # No more names than are needed to tell, however many callers there are.
        if len(self._failing) < _CALLERS_OF_AN_OUTAGE:
            self._failing.add(tenancy().user.id)
        if len(self._failing) == _CALLERS_OF_AN_OUTAGE:
            self._of_all.failed()

    def abandoned(self) -> None:
        """Note that a call of the running task's caller ended without news of the server."""
        self._of_callers.mine.abandoned()
        self._of_all.abandoned()


_REJECTED_SECONDS = 30.0
"""How long a caller's rejected key or model is remembered, while nothing was ever answered."""


class Rejections:
    """The callers whose calls a server rejected for the settings, and why.

    Each caller finds out for itself, because an odd prompt of one must not end the others' calls.

    Args:
        clock: Seconds on a clock that never goes back.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._rejected: OrderedDict[str, tuple[CallFailedError, float]] = OrderedDict()

    def add(self, failure: CallFailedError) -> None:
        """Remember why the running task's caller was rejected, for half a minute."""
        until = self._clock() + _REJECTED_SECONDS
        # The first time holds, so that refusals by this record do not prolong it.
        self._rejected.setdefault(tenancy().user.id, (failure, until))
        while len(self._rejected) > MAX_CALLERS:
            self._rejected.popitem(last=False)

    def mine(self) -> CallFailedError | None:
        """Return why the running task's caller was rejected; None if it may try."""
        failure, until = self._rejected.get(tenancy().user.id, (None, 0.0))
        if failure is None:
            return None
        if self._clock() < until:
            # A copy: an error keeps the frames of every call that it was raised in.
            return failure.with_detail(failure.detail)
        self.forget()
        return None

    def forget(self) -> None:
        """Let the running task's caller try again."""
        self._rejected.pop(tenancy().user.id, None)


# Two looks, because one may have begun before what is asked about.
_LOOKS = 2
_POLL_SECONDS = 0.2
# Looks that fail for longer lead to a restart.
_MOST_DOUBT_SECONDS = 120.0


class Supervision:
    """Whether a supervised server is being started again. Any thread may read it.

    Args:
        name: What messages call it.
        most_seconds: How long calls wait for a restart at most.
        clock: Seconds on a clock that never goes back.
    """

    def __init__(
        self, name: str, most_seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.name = name
        self._clock = clock
        self.most_seconds = most_seconds
        self.restarts = 0
        """How often it ended or hung so far."""
        self.given_up = ""
        """Why it is started no more; empty while it is."""
        self._looks = 0
        self._why = ""
        self._since = 0.0

    @property
    def is_down(self) -> bool:
        """Whether it is known not to serve."""
        return bool(self._why or self.given_up)

    @property
    def waiting(self) -> str:
        """What calls wait for, in one sentence; empty if it serves."""
        if not self._why:
            return ""
        return (
            f"{self.name} {self._why} and is started again, since {self.seconds:.0f} s; calls wait "
            f"for it, for {self.most_seconds:,.0f} s at most"
        )

    @property
    def seconds(self) -> float:
        """How long it has been down."""
        return self._clock() - self._since if self._why else 0.0

    def looked(self) -> None:
        """Note that it answered a look at its health."""
        self._looks += 1

    def began(self, why: str) -> None:
        """Note that it ended or hangs, and is started again."""
        if not self._why:
            self._since = self._clock()
            self.restarts += 1
        self._why = why

    def ended(self) -> None:
        """Note that it serves again."""
        self._why = ""

    def gives_up(self, why: str) -> None:
        """Note that it is started no more."""
        self._why, self.given_up = "", why

    async def ended_since(self, restarts: int, sleep: Callable[[float], Awaitable[None]]) -> bool:
        """Return whether it ended or hung after an earlier moment.

        It may hang without being known to: what the next looks at its health find is waited for.

        Args:
            restarts: The number of restarts at that moment.
            sleep: Waits for seconds.
        """
        looks, left = self._looks + _LOOKS, _MOST_DOUBT_SECONDS
        while not self._has_ended(restarts) and self._looks < looks and left > 0:
            await sleep(_POLL_SECONDS)
            left -= _POLL_SECONDS
        return self._has_ended(restarts)

    def _has_ended(self, restarts: int) -> bool:
        return self.restarts != restarts or self.is_down

    async def served(self, sleep: Callable[[float], Awaitable[None]], most: float) -> str:
        """Wait until it serves; return why it does not after all, and empty if it does.

        Args:
            sleep: Waits for seconds.
            most: How long is waited at most.
        """
        most = min(most, self.most_seconds)
        while self._why and self.seconds < most:
            await sleep(_POLL_SECONDS)
        if self.given_up:
            return self.given_up
        if self._why:
            return f"{self.name} {self._why}, and does not serve again after {most:,.0f} s"
        return ""


class Outage:
    """The failures of a caller's calls since the judge last answered one.

    Args:
        clock: Seconds on a clock that never goes back.
        judge: The same of all callers. That others are answered shows that the judge works.
    """

    def __init__(self, clock: Callable[[], float], judge: Outage | None = None) -> None:
        self._clock = clock
        self._judge = judge or self
        self.calls = 0
        """Calls that a caller waits for."""
        self._busy_since = clock()
        self._answered_at = float("-inf")
        self._answers = 0
        self._since = clock()
        self.cause: CallFailedError | None = None
        """The first failure since the last answer; None if there was none."""

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to remember."""
        return not self.calls and self.cause is None

    @property
    def answers(self) -> int:
        """Calls answered so far, of all callers."""
        return self._judge._answers

    @property
    def seconds(self) -> float:
        """Seconds since the first failure that no answer followed; 0 if there is none."""
        return 0.0 if self.cause is None else self._clock() - self._since

    @property
    def seconds_without_answer(self) -> float:
        """Seconds for which calls have been waiting without any answer."""
        return self._clock() - max(self._judge._answered_at, self._busy_since)

    def answered_since(self, moment: float) -> bool:
        """Whether the judge answered any caller's call after a moment."""
        return self._judge._answered_at > moment

    def call_begins(self) -> None:
        """Note that a caller waits for an answer."""
        if not self.calls:
            self._busy_since = self._clock()
        self.calls += 1

    def call_ends(self) -> None:
        """Note that a caller no longer waits."""
        self.calls -= 1

    def forget(self) -> None:
        """Note that the judge serves again: what was before is no outage any more."""
        self._busy_since = self._clock()
        self.cause = None

    def answered(self) -> None:
        """Note that the judge answered, if only to reject a request."""
        self._judge._answers += 1
        self._judge._answered_at = self._clock()
        self.cause = None

    def failed(self, failure: CallFailedError) -> None:
        """Note a failure that may be the judge's own trouble."""
        if self.cause is None:
            self.cause, self._since = failure, self._clock()
