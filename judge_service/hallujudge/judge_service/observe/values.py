"""What is recorded of a call, of a call to a language model, and of a model's state."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..access.caller import Caller

__all__ = [
    "NO_CALLER",
    "CallRecord",
    "JobsActivity",
    "JudgeCall",
    "JudgeState",
    "Stage",
    "WorkerState",
    "key_label",
]

NO_CALLER = "unknown"
"""The key label of a call that was refused before its caller was known."""


class Stage(enum.Enum):
    """How far a call has come."""

    BEGUN = enum.auto()
    WAITING = enum.auto()
    RUNNING = enum.auto()


@dataclass(slots=True, kw_only=True)
class CallRecord:
    """One RPC, from its first byte to its end. It holds no response, and no key."""

    method: str
    """The method's name, such as ``Score``."""
    service: str = ""
    """The full name of the method's service; empty: the call is not of a method."""
    request_id: str = ""
    """The id that the client chose, or one that the server chose."""
    peer: str = ""
    """The caller's address."""
    key: str = NO_CALLER
    """The id of the caller's key, or the kind of caller; see :func:`key_label`."""
    stage: Stage = Stage.BEGUN
    """How far it has come."""
    wait_began: float = 0.0
    """When it began to wait, by :func:`time.perf_counter`."""
    metric: str = ""
    """The metric whose items it scored last; empty: none."""
    scored: int = 0
    """Its scored items."""
    unscored: int = 0
    """Its unscored items."""
    seconds: float = 0.0
    """How long it took."""
    waited_seconds: float = 0.0
    """How long it waited to be admitted."""
    status: str = "OK"
    """The name of its gRPC status code."""
    error: str = ""
    """The text of its error, which may quote what the caller sent."""
    trace_id: str = ""
    """The id of its trace; empty: it is not traced."""

    @property
    def items(self) -> int:
        """The number of its items."""
        return self.scored + self.unscored


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerState:
    """What worker processes do."""

    busy: int = 0
    """Workers that work."""
    waiting: int = 0
    """Tasks that wait for a worker."""
    deaths: int = 0
    """Workers that died at work since the server started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsActivity:
    """How many jobs there are, and whether they move."""

    counts: Mapping[str, int] = field(default_factory=dict)
    """State -> number of jobs; empty: they were not counted yet, or the server keeps none."""
    still_seconds: float = 0.0
    """Seconds since a job got results or ended, while some are queued or running, or while their
    database can't be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCall:
    """One call that was sent to a language model."""

    model: str
    """The model, as the settings name it."""
    outcome: str
    """``answered``, or the kind of failure."""
    seconds: float
    """How long it took."""
    prompt_tokens: int = 0
    """Tokens sent."""
    cached_tokens: int = 0
    """Those of them that the model's server had cached."""
    completion_tokens: int = 0
    """Tokens received."""
    cost: float = 0.0
    """Price by the settings; 0 where none is set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeState:
    """The calls to one language model at this moment."""

    model: str
    """The model, as the settings name it."""
    running: int
    """Calls under way."""
    waiting: int
    """Calls that wait for a place."""
    limit: int
    """Calls that may be under way."""
    circuit_open: bool
    """Whether it is not called for a while, because calls before failed."""


def key_label(caller: Caller) -> str:
    """Return what stands for a caller in metrics and logs.

    The id of a key is ours. Addresses and names in certificates are not: they share one word each.
    """
    if caller.key_id:
        return caller.key_id
    kind = caller.id.partition(":")[0]
    return {"peer": "anonymous"}.get(kind, kind)
