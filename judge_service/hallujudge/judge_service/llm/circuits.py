"""When a judge's server is not called: open circuits, and callers that it rejected.

A rejected key, an unknown model or other settings end a run whose judge never answered.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar

from ..errors import InvalidInputError
from ..tenancy import tenancy
from .failures import CallFailedError, FailureKind

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
        self._of_all = CircuitBreaker(1, open_seconds, clock)
        self._failing: set[str] = set()

    @property
    def mine(self) -> CircuitBreaker:
        """The circuit that the running task's calls pass."""
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


def unusable(failure: CallFailedError, *, role: str, place: str, model: str) -> InvalidInputError:
    """Return the error of a judge that cannot be used as it is configured.

    Args:
        failure: What its server said.
        role: What messages call it.
        place: Where it is.
        model: Its model.
    """
    return InvalidInputError(
        f"the {role} at {place} cannot be used: {failure.detail}; "
        f"{_advice(failure.kind, role, model)}",
        reason=failure.kind.value,
        metadata={"url": place, "model": model},
    )


def _advice(kind: FailureKind, role: str, model: str) -> str:
    if kind is FailureKind.AUTH:
        return (
            f"set the right key in the environment: HALLUJUDGE_LLM_API_KEY is the {role}'s, "
            "HALLUJUDGE_FALLBACK_API_KEY the fallback's; for OpenAI's and Azure's addresses "
            "OPENAI_API_KEY and AZURE_OPENAI_API_KEY are read too"
        )
    if kind is FailureKind.OTHER_MODEL:
        return (
            "set llm.model (fallback.model) to the model that you want, or llm.reply_models "
            "(fallback.reply_models) to the names that its replies carry"
        )
    if kind is FailureKind.REFUSED_REQUEST:
        # Nothing constrains a model's own answers.
        known = "llm.dialect" if role == "model" else "llm.dialect and llm.constraint"
        return (
            "it refused another question with the same words; check the key and the model name "
            f"{model!r}, set {known} to what the server knows, which "
            "`hallujudge doctor` finds out, or llm.omit to the parameters that it refuses"
        )
    return f"check the address and the model name {model!r}"
