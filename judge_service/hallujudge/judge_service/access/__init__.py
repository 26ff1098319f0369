"""Who calls, and what each caller may use: scopes, numbers of calls, memory."""

from __future__ import annotations

import asyncio
import enum
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from msgspec.structs import replace

from ..errors import OverloadedError, PermissionDeniedError
from ..tenancy import (
    MemoryBudget,
    RunningCall,
    Scheduler,
    User,
    quota_text,
    tenancy,
    within,
    work_as,
)

MAX_LIMIT = 2**31 - 1
"""The largest number of a caller's limits, which is that of the server's settings."""

_MINUTE = 60.0
# A guess: when one of the caller's calls will end is unknown.
_BUSY_SECONDS = 1.0


class CallMemory:
    """What one call holds of the memory budget.

    Work that outlives its call, such as that of a cancelled stream, gets no memory in its name: it
    would never be given back.

    Args:
        budget: The budget of the process.
    """

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._messages: deque[int] = deque()
        self._results: deque[int] = deque()
        self._kept = 0
        self._ended = False

    def take(self, size: int) -> None:
        """Take bytes for a message of the call.

        Raises:
            OverloadedError: They do not fit.
        """
        if not self._ended:
            self._budget.take(size)
            self._messages.append(size)

    def grow(self, size: int) -> None:
        """Take more bytes for the newest message.

        Raises:
            OverloadedError: They do not fit.
        """
        if not self._ended:
            self._budget.take(size)
            self._messages[-1] += size

    def keep(self, size: int) -> None:
        """Take bytes that stay until the call ends.

        Raises:
            OverloadedError: They do not fit.
        """
        if not self._ended:
            self._budget.take(size, "what is kept of its items")
            self._kept += size

    def result(self, size: int) -> None:
        """Count a result that waits to be sent, until :meth:`answered`."""
        if not self._ended:
            # It is there already, and a refusal would lose the work that made it.
            self._budget.add(size)
            self._results.append(size)

    @property
    def busy(self) -> bool:
        """Whether a message has no answer yet."""
        return bool(self._messages)

    def answered(self) -> None:
        """Give back what the oldest message and result held: the answer is sent."""
        # The oldest, since answers are sent in the order of their messages.
        for sizes in (self._messages, self._results):
            if sizes:
                self._budget.give_back(sizes.popleft())

    def close(self) -> None:
        """Give back everything: the call has ended."""
        self._ended = True
        while self._messages or self._results:
            self.answered()
        self._budget.give_back(self._kept)
        self._kept = 0


@dataclass(slots=True, kw_only=True)
class ServedCall(RunningCall):
    """What one RPC holds and waits for."""

    memory: CallMemory | None = None
    """What it holds of the memory budget; None before it is admitted."""
    pause: str = ""
    """Why its stream takes no message now; empty while it does."""


def served_call() -> ServedCall:
    """Return the RPC that the running task serves; a new one outside of calls."""
    call = tenancy().call
    return call if isinstance(call, ServedCall) else ServedCall()


def begin_memory(memory: CallMemory) -> None:
    """Make the running task, which serves one RPC, hold memory in its name."""
    now = tenancy()
    if isinstance(now.call, ServedCall):
        now.call.memory = memory
    else:
        work_as(replace(now, call=ServedCall(memory=memory)))


def call_memory() -> CallMemory:
    """Return what the running call holds; outside of calls nothing is limited."""
    return served_call().memory or CallMemory(MemoryBudget())


class Scope(enum.StrEnum):
    """What a key may be used for."""

    SCORE = "score"
    """Score items."""
    EXTRACT = "extract"
    """Extract claims, and look up words."""
    JUDGE = "judge"
    """Call language models, which cost time or money, in any RPC."""
    ADMIN = "admin"
    """Everything that the other scopes allow, and to list and cancel the jobs of all callers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller(User):
    """Who calls. Its id is ``key:…``, ``certificate:…`` or ``peer:…``; its name that of its key."""

    key_name: str = ""
    """The name of its key, if it has one."""
    secret: str = field(default="", compare=False, repr=False)
    """The hash of the secret that it showed, if it has a key."""
    scopes: frozenset[Scope] = field(default_factory=frozenset)
    """What it may do."""
    levels: tuple[str, ...] = field(default=(), compare=False)
    """What its calls count for, the widest first: a network and a connection, or its id."""

    def __post_init__(self) -> None:
        if not self.levels:
            object.__setattr__(self, "levels", (self.id,))

    @property
    def is_admin(self) -> bool:
        """Whether it has every scope."""
        return Scope.ADMIN in self.scopes

    def require(self, scope: Scope) -> None:
        """Refuse a caller without a scope.

        Raises:
            PermissionDeniedError: The caller does not have it.
        """
        if scope not in self.scopes and not self.is_admin:
            raise PermissionDeniedError(
                f"{self.name} does not have the scope {scope.value}; ask the server's "
                "administrator for a key that has it",
                metadata={"scope": scope.value},
            )

    def require_judging(self) -> None:
        """Refuse a caller who may not call language models.

        Raises:
            PermissionDeniedError: The caller's key does not have the scope.
        """
        if self.key_id:  # only keys lose scopes
            self.require(Scope.JUDGE)


LOCAL = Caller(id="local", name="this process", scopes=frozenset(Scope))
"""The caller of an engine without a server."""

Standing: TypeAlias = Callable[[Caller], Caller]
"""Returns a caller with the scopes and limits that its key has now; raises if the key has ended."""


def current_caller() -> Caller:
    """Return the caller that the running task works for; tasks and threads inherit it."""
    user = tenancy().user
    return user if isinstance(user, Caller) else LOCAL


def use_standing(standing: Standing) -> None:
    """Let the running task, and those that it starts, look callers up as their keys stand now."""
    work_as(replace(tenancy(), standing=partial(_standing, standing)))


def _standing(standing: Standing, user: User) -> User:
    return standing(user) if isinstance(user, Caller) else user


def caller_now() -> Caller:
    """Return the running task's caller as its key stands now, not as when the work began.

    Raises:
        UnauthenticatedError: The key was revoked, has expired, or is no longer known.
    """
    now = tenancy().user_now()
    return now if isinstance(now, Caller) else LOCAL


def begin_call(caller: Caller, standing: Standing, scheduler: Scheduler | None = None) -> None:
    """Make the running task, which serves one RPC, work for a caller until it ends.

    Args:
        caller: The caller.
        standing: Looks callers up as their keys stand later.
        scheduler: Shares the processor between callers.
    """
    now = tenancy()
    call = now.call if isinstance(now.call, ServedCall) else ServedCall()
    looked_up = partial(_standing, standing)
    work_as(replace(now, user=caller, standing=looked_up, scheduler=scheduler, call=call))


def stream_pause() -> str:
    """Return why the running stream takes no message now; empty while it does."""
    return served_call().pause


@contextmanager
def acting_as(caller: Caller) -> Iterator[None]:
    """Work for a caller inside the block, as for a job that goes on after its call."""
    with within(replace(tenancy(), user=caller)):
        yield


@dataclass(slots=True)
class _Use:
    """What a caller uses now."""

    left: float
    filled: float
    inside: int = 0

    def __enter__(self) -> None:
        self.inside += 1

    def __exit__(self, *_: object) -> None:
        self.inside -= 1


# Of callers without limits nothing is looked at.
_UNCOUNTED = _Use(0.0, 0.0)


class CallerLimits:
    """Counts what callers use; only those with limits are counted.

    A caller may make a minute's calls at once. They come back evenly over the next minute.

    Args:
        clock: Seconds on a clock that never goes back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._uses: dict[str, _Use] = {}

    def call(self, caller: Caller) -> _Use:
        """Return a block in which a call is counted.

        Raises:
            OverloadedError: The caller is at one of its limits.
        """
        limit = caller.limits.max_concurrency
        use = self._use(caller)
        if limit is not None and use.inside >= limit:
            calls = "call" if use.inside == 1 else "calls"
            raise OverloadedError(
                f"{caller.name} has {use.inside} {calls} running or waiting, and may have {limit}; "
                f"try again in {_BUSY_SECONDS:g} s",
                reason="KEY_CONCURRENCY_LIMIT",
                metadata={"limit": str(limit), "key": caller.key_name},
                retry_after=_BUSY_SECONDS,
            )
        if (wait := self._wait(caller, use)) > 0:
            raise OverloadedError(
                f"{caller.name} may make {caller.limits.calls_per_minute} calls in a minute; "
                f"try again in {wait:.1f} s",
                reason="KEY_RATE_LIMIT",
                metadata={
                    "limit": str(caller.limits.calls_per_minute),
                    "key": caller.key_name,
                },
                retry_after=wait,
            )
        return use

    async def message(self, caller: Caller) -> None:
        """Wait until the caller may send another message of a stream."""
        call = served_call()
        while (wait := self._wait(caller, self._use(caller))) > 0:
            call.pause = quota_text(
                "KEY_RATE_LIMIT", caller.key_name, caller.limits.calls_per_minute
            )
            try:
                await asyncio.sleep(wait)
            finally:
                call.pause = ""

    def _use(self, caller: Caller) -> _Use:
        limits = caller.limits
        if limits.calls_per_minute is None and limits.max_concurrency is None:
            return _UNCOUNTED
        use = self._uses.get(caller.id)
        if use is None:
            use = _Use(float(limits.calls_per_minute or 0), self._clock())
            self._uses[caller.id] = use
        return use

    def _wait(self, caller: Caller, use: _Use) -> float:
        """Take one call if there is one left; else return the seconds until there is one."""
        most = caller.limits.calls_per_minute
        if most is None:
            return 0.0
        moment = self._clock()
        use.left = min(most, use.left + (moment - use.filled) * most / _MINUTE)
        use.filled = moment
        if use.left >= 1:
            use.left -= 1
            return 0.0
        # Never zero, which would mean that the call was admitted.
        return max((1 - use.left) * _MINUTE / most, 0.001)
