"""Whom work is done for, and what it may use: the value that a server hands to the engine.

Queues, budgets, circuit breakers and recorders ask :func:`tenancy`, which is one user without
limits unless somebody else was set. A server sets the caller of the RPC or job. The value
travels in the library's only context variable: tasks and threads inherit it, so that no function
between an RPC and the call of a judge passes it on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from .errors import OverloadedError

Attributes: TypeAlias = Mapping[str, str | int | float | bool]
"""The attributes of a span."""
Outcomes: TypeAlias = Mapping[str, int]
"""Reason -> number of unscored items; the empty reason has the scored items."""

_NO_SPAN = nullcontext()
# Memory is given back when a call ends, and most calls take less than a second.
_RETRY_SECONDS = 1.0
_MIB = 1 << 20
MAX_WEIGHT = 100
"""The largest weight of a user."""

_T = TypeVar("_T")
_R = TypeVar("_R")

Work: TypeAlias = Callable[[Sequence[_T]], Iterable[_R]]
"""Returns the result of each value of a block, in order."""
Chars: TypeAlias = Callable[[_T], int]
"""Returns how many characters of a caption take as long to match as a value."""


class JudgeCall(Struct, frozen=True, kw_only=True):
    """One call that was sent to a language model."""

    model: str
    """The model, as the settings name it."""
    outcome: str
    """``answered``, or the kind of failure."""
    seconds: float
    """The duration of the call."""
    prompt_tokens: int = 0
    """Tokens sent."""
    cached_tokens: int = 0
    """Those of them that the model's server had cached."""
    completion_tokens: int = 0
    """Tokens received."""
    cost: float = 0.0
    """Price by the settings; 0 if no price is set."""


class JudgeState(Struct, frozen=True, kw_only=True):
    """The calls to one language model at this moment."""

    model: str
    """The model, as the settings name it."""
    running: int
    """Calls in progress."""
    waiting: int
    """Calls that wait for a place."""
    limit: int
    """The maximum number of calls in progress."""
    circuit_open: bool
    """Whether the circuit breaker holds calls back because earlier calls failed."""


class EvaluatedItem(Struct, frozen=True, kw_only=True):
    """An item's scores, without its texts."""

    id: str
    scores: Mapping[str, float] = {}
    """Its own scores, without undefined ones."""
    reason: str = ""
    """Why it is unscored; empty if it is scored."""


class WorkRecorder:
    """Records nothing. Subclasses override the methods for what they show."""

    wants_items = False
    """Whether :meth:`items_evaluated` is called, which takes time for each item."""

    def items_scored(self, metric: str, outcomes: Outcomes) -> None:
        """Record the outcomes of items."""

    def items_evaluated(self, metric: str, items: Sequence[EvaluatedItem]) -> None:
        """Record the scores of items."""

    def judge_called(self, call: JudgeCall) -> None:
        """Record a call to a language model."""

    def budget_refused(self) -> None:
        """Record a call to a language model that was not sent because a budget is spent."""

    def looked_up(self, found: str) -> None:
        """Record where a reply was looked up.

        Args:
            found: Where it was found: ``memory``, ``cache``, or ``nowhere``.
        """

    def fell_back(self, judge: str, reason: str) -> None:
        """Record that a claim or question went on to the next judge.

        Args:
            judge: The judge that returned no verdict.
            reason: Why.
        """

    def span(self, name: str, attributes: Attributes) -> AbstractContextManager[None]:  # noqa: ARG002
        """Return a block of work that appears in traces."""
        return _NO_SPAN


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a user may use; None for no limit of its own."""

    calls_per_minute: int | None = None
    """Calls, and messages of streams, in a minute."""
    max_concurrency: int | None = None
    """Calls at the same time, waiting ones included."""
    judge_calls_per_day: int | None = None
    """Calls to language models in a day (UTC)."""
    cost_per_day: float | None = None
    """Money for language models in a day (UTC)."""
    weight: int = 1
    """Its share where users queue: one of weight 3 gets three times what one of weight 1 gets."""

    def __post_init__(self) -> None:
        """Check the weight, by which a queue divides.

        Raises:
            ValueError: It is not a whole number from 1 to 100.
        """
        # A bool is an int too, and no weight.
        if type(self.weight) is not int or not 1 <= self.weight <= MAX_WEIGHT:
            raise ValueError(f"the weight {self.weight!r:.40} is not from 1 to {MAX_WEIGHT}")


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Whom work is done for."""

    id: str
    """What queues, limits and shared replies belong to."""
    name: str
    """The name for people."""
    key_id: str = ""
    """The id of its key at a server, if it has one."""
    limits: Limits = field(default_factory=Limits)
    """What it may use."""

    def require_judging(self) -> None:
        """Refuse a user who may not call language models; without keys each user may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """The most that one call can cost, taken from a key's day."""

    key: str
    """The key's id."""
    day: str
    """The day that it counts for, in UTC."""
    cost: float
    """The most that the call can cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowded:
    """A call that does not fit now, but may fit when the key's running calls have ended."""

    settled: Future[None]
    """Done when the cost of a running call is known."""


class Spending(Protocol):
    """Keeps what each user spends on language models."""

    async def take(self, user: User, cost: float, *, priced: bool) -> Hold | Crowded | str | None:
        """Count one call of a user before it is sent.

        Returns:
            What :meth:`settle` needs; None if nothing is counted; what the call has to wait for; or
            why it may not be made, in words.
        """

    def settle(self, hold: Hold, cost: float) -> None:
        """Replace the highest cost of a call by what it cost."""

    def give_back(self, hold: Hold) -> None:
        """Forget a call that was not sent."""


class Scheduler(Protocol):
    """Shares the processor between users."""

    async def map(self, work: Work[_T, _R], values: Sequence[_T], chars: Chars[_T]) -> list[_R]:
        """Return the results of values, in order."""

    async def in_thread(self, work: Callable[[], _T], *, short: bool = False) -> _T:
        """Run work in a thread, for which users queue."""


class MemoryBudget:
    """Counts the memory that callers make the process hold; safe to use from several threads.

    Args:
        limit: The most bytes; None to only count them.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self._held = 0
        self._lock = threading.Lock()

    @property
    def held(self) -> int:
        """The bytes that are held."""
        return self._held

    def take(self, size: int, what: str = "the message") -> None:
        """Take bytes, which the caller returns later.

        Raises:
            OverloadedError: They do not fit.
        """
        with self._lock:
            if self.limit is not None and self._held + size > self.limit:
                raise self._full(size, what)
            self._held += size

    def add(self, size: int) -> None:
        """Count bytes that are already held, such as a finished response."""
        with self._lock:
            self._held += size

    def give_back(self, size: int) -> None:
        """Give bytes back."""
        with self._lock:
            self._held -= size

    def _full(self, size: int, what: str) -> OverloadedError:
        limit = self.limit or 0
        # What is larger than the whole budget never fits, so that no time to retry is given.
        more = "" if size <= limit else "; send less in one message"
        return OverloadedError(
            f"the server's memory budget of {limit // _MIB} MiB has no room for {what} "
            f"({size / _MIB:.1f} MiB with what is made of it){more}",
            reason="MEMORY_FULL",
            metadata={"limit": str(limit), "needed": str(size)},
            retry_after=_RETRY_SECONDS if size <= limit else None,
        )


class CallGate:
    """Decides whether the calls of some work may be sent: here, always."""

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Return a block in which this gate decides, also for tasks that begin in it."""
        with within(replace(tenancy(), gate=self)):
            yield

    @property
    def is_closed(self) -> bool:
        """Whether no further call may be sent."""
        return False

    async def leave(self) -> None:
        """Wait until a further call may be sent."""

    @contextmanager
    def open(self) -> Iterator[None]:
        """Return a block with a call, from before it is sent until its reply is kept."""
        yield

    def cannot_keep(self, problem: str) -> None:
        """Learn that replies can't be kept, in a sentence that says where and why."""


class Flight:
    """What the running task works for, as far as flights are concerned: here, nothing.

    Its calls are sent without being written down.
    """

    def waits(self) -> None:
        """Note that a call waits."""

    async def ready(self) -> bool:
        """Wait a little until calls can be written down; return whether they can."""
        return True

    async def takes_off(self) -> bool:
        """Write down that a call is about to be sent; return whether that was possible soon."""
        return True

    def lands(self) -> None:
        """Note that a call that was sent is answered, or has failed."""


class RunningCall:
    """The RPC that the work serves: here, none."""

    __slots__ = ()

    def count(self, metric: str, outcomes: Outcomes) -> None:
        """Count outcomes of items."""


def quota_text(reason: str, key: str, limit: object) -> str:
    """Return what a user waits for, such as ``key ana, 5 calls a minute``.

    Args:
        reason: ``KEY_RATE_LIMIT`` or ``KEY_CONCURRENCY_LIMIT``.
        key: The name of the key.
        limit: The limit.
    """
    calls = "call" if str(limit) == "1" else "calls"
    per = "a minute" if reason == "KEY_RATE_LIMIT" else "at once"
    return f"key {key}, {limit} {calls} {per}"


class Tenancy(Struct, frozen=True, kw_only=True):
    """Whom work is done for, what it may use, and who records it."""

    user: User = User(id="local", name="this process")
    """Whom the work is done for."""
    standing: Callable[[User], User] = lambda user: user
    """Returns a user with the limits that it has now; raises if it may no longer call."""
    recorder: WorkRecorder = WorkRecorder()
    """Records the work."""
    scheduler: Scheduler | None = None
    """Shares the processor; None if there is one user."""
    unwanted: threading.Event | None = None
    """Set when no one waits for the work any more."""
    gate: CallGate = CallGate()
    """Decides whether calls to judges may be sent."""
    flight: Flight = Flight()
    """The item of a job that the work is for."""
    call: RunningCall = RunningCall()
    """The RPC that the work serves."""
    verdicts: dict[str, int] | None = None
    """Counts the verdicts of each judge as it gives them; None where they are not shown."""

    def user_now(self) -> User:
        """Return the user as it stands now, not as when the work began.

        Raises:
            UnauthenticatedError: Its key was revoked, has expired, or is no longer known.
        """
        return self.standing(self.user)

    def record_outcomes(
        self, metric: str, outcomes: Outcomes, items: Sequence[EvaluatedItem] = ()
    ) -> None:
        """Record outcomes that were counted, for the running call too.

        Args:
            metric: The metric.
            outcomes: The outcomes.
            items: The items, where the recorder wants them.
        """
        self.call.count(metric, outcomes)
        self.recorder.items_scored(metric, outcomes)
        if items:
            self.recorder.items_evaluated(metric, items)


_TENANCY: ContextVar[Tenancy] = ContextVar("hallujudge_tenancy", default=Tenancy())  # noqa: B039 - it is frozen


# Methods of the variable and not functions around them, since every call of a server uses both.
tenancy = _TENANCY.get
"""Returns whom the running task works for; tasks and threads inherit it."""
work_as = _TENANCY.set
"""Makes the running task, and tasks that it starts, work for others or record elsewhere."""


@contextmanager
def within(now: Tenancy) -> Iterator[None]:
    """Return a block with another tenancy, also for tasks that begin in it."""
    token = _TENANCY.set(now)
    try:
        yield
    finally:
        _TENANCY.reset(token)
