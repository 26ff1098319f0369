"""The caller of an RPC: who it is, and what it may do."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from ..errors import PermissionDeniedError

__all__ = [
    "LOCAL",
    "MAX_LIMIT",
    "MAX_WEIGHT",
    "Caller",
    "Limits",
    "Scope",
    "acting_as",
    "begin_call",
    "current_caller",
]


MAX_WEIGHT = 100
"""The largest weight of a caller."""
MAX_LIMIT = 2**31 - 1
"""The largest number of a caller's limits, as of the server's settings; None is no limit."""


class Scope(enum.StrEnum):
    """What a key may be used for."""

    SCORE = "score"
    """Score items."""
    EXTRACT = "extract"
    """Extract claims, and look up words."""
    JUDGE = "judge"
    """Call language models, which cost time or money, in whatever RPC."""
    ADMIN = "admin"
    """Everything that the other scopes allow. Jobs are seen by the key that created them alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a caller may use; None: no limit of its own."""

    calls_per_minute: int | None = None
    """Calls, and messages of streams, in a minute."""
    max_concurrency: int | None = None
    """Calls at the same time, waiting ones included."""
    judge_calls_per_day: int | None = None
    """Calls to language models in a day (UTC)."""
    cost_per_day: float | None = None
    """Money for language models in a day (UTC)."""
    weight: int = 1
    """Its share where callers queue: one of weight 3 gets three times what one of weight 1 gets."""

    def __post_init__(self) -> None:
        """Check the weight, by which a queue divides.

        Raises:
            ValueError: It is not a whole number from 1 to 100.
        """
        if type(self.weight) is not int or not 1 <= self.weight <= MAX_WEIGHT:
            raise ValueError(f"the weight {self.weight!r:.40} is not from 1 to {MAX_WEIGHT}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who calls."""

    id: str
    """What limits, queues and jobs belong to: ``key:…``, ``certificate:…`` or ``peer:…``."""
    name: str
    """The name for people: of the key, or the id."""
    key_id: str = ""
    """The id of its key; empty: the caller has none."""
    scopes: frozenset[Scope] = field(default_factory=frozenset)
    """What it may do."""
    limits: Limits = field(default_factory=Limits)
    """What it may use."""

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


LOCAL = Caller(id="local", name="this process", scopes=frozenset(Scope))
"""The caller of an engine without a server."""

_CALLER: ContextVar[Caller] = ContextVar("hallujudge_caller", default=LOCAL)


def current_caller() -> Caller:
    """Return the caller that the running task works for; tasks and threads inherit it."""
    return _CALLER.get()


def begin_call(caller: Caller) -> None:
    """Make the running task, which serves one RPC, work for a caller until it ends."""
    _CALLER.set(caller)


@contextmanager
def acting_as(caller: Caller) -> Iterator[None]:
    """Work for a caller inside the block, as for a job that goes on after its call."""
    token = _CALLER.set(caller)
    try:
        yield
    finally:
        _CALLER.reset(token)
