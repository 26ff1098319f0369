"""Recording of a server's calls, and of the work that they do."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec

from msgspec import Struct
from msgspec.structs import replace

from ..access import Caller, ServedCall
from ..tenancy import Attributes, Outcomes, RunningCall, WorkRecorder, tenancy, work_as

_P = ParamSpec("_P")

NO_CALLER = "unknown"
"""The key label of a call that was refused before its caller was known."""


class Stage(enum.Enum):
    """How far a call has come."""

    BEGUN = enum.auto()
    WAITING = enum.auto()
    RUNNING = enum.auto()
    ENDED = enum.auto()


@dataclass(slots=True, kw_only=True)
class CallRecord(ServedCall):
    """One RPC, from its first byte to its end. It holds no response, and no key."""

    method: str
    """The method's name, such as ``Score``."""
    service: str = ""
    """The full name of the method's service; empty if the call is not to a method."""
    request_id: str = ""
    """The id that the client chose, or one that the server chose."""
    peer: str = ""
    """The caller's address."""
    key: str = NO_CALLER
    """The id of the caller's key, or the kind of caller; see :func:`key_label`."""
    key_name: str = ""
    """The name of its key, if it has one."""
    stage: Stage = Stage.BEGUN
    """How far it has come."""
    wait_began: float = 0.0
    """When it began to wait, by :func:`time.perf_counter`."""
    metric: str = ""
    """The metric whose items it scored last, if any."""
    scored: int = 0
    """Its scored items."""
    unscored: int = 0
    """Its unscored items."""
    began: float = field(default_factory=time.perf_counter)
    """When it arrived, by :func:`time.perf_counter`."""
    seconds: float = 0.0
    """How long it took."""
    waited_seconds: float = 0.0
    """How long it waited to be admitted."""
    status: str = "OK"
    """The name of its gRPC status code."""
    error: str = ""
    """The text of its error, which may quote what the caller sent."""
    trace_id: str = ""
    """The id of its trace; empty if it is not traced."""

    @property
    def items(self) -> int:
        """The number of its items."""
        return self.scored + self.unscored

    def count(self, metric: str, outcomes: Outcomes) -> None:
        """Count outcomes of items."""
        self.metric = metric
        scored = outcomes.get("", 0)
        self.scored += scored
        self.unscored += sum(outcomes.values()) - scored


class WorkerState(Struct, frozen=True, kw_only=True):
    """What worker processes do."""

    busy: int = 0
    """Workers that work."""
    waiting: int = 0
    """Tasks that wait for a worker."""
    deaths: int = 0
    """Workers that died at work since the server started."""


class JobsActivity(Struct, frozen=True, kw_only=True):
    """How many jobs there are, and whether they move."""

    counts: Mapping[str, int] = {}
    """State -> number of jobs; empty: they were not counted yet, or the server keeps none."""
    still_seconds: float = 0.0
    """Seconds since a job got results or ended, while some are queued or running, or while their
    database can't be used."""


def key_label(caller: Caller) -> str:
    """Return the label of a caller in metrics and logs.

    The id of a key is ours, and so is its name, which :attr:`CallRecord.key_name` has. Addresses
    and names in certificates are not: they share one word each.
    """
    if caller.key_id:
        return caller.key_id
    kind = caller.id.partition(":")[0]
    return {"peer": "anonymous"}.get(kind, kind)


class Recorder(WorkRecorder):
    """Records nothing but how far a call has come. Subclasses override the methods."""

    name = "the recorder of calls"
    """What a server's log calls it."""

    @property
    def parts(self) -> Sequence[Recorder]:
        """The recorders that it consists of."""
        return (self,)

    def call_begun(self, call: CallRecord, metadata: Iterable[tuple[str, str | bytes]]) -> None:
        """An RPC arrived.

        Args:
            call: The call.
            metadata: Its headers.
        """

    def call_waits(self, call: CallRecord) -> None:
        """A call waits to be admitted."""
        call.stage = Stage.WAITING
        call.wait_began = time.perf_counter()

    def call_runs(self, call: CallRecord) -> None:
        """A call was admitted."""
        call.stage = Stage.RUNNING
        call.waited_seconds = time.perf_counter() - call.wait_began

    def call_ended(self, call: CallRecord) -> None:
        """A call ended."""
        # A call that its caller gave up while it waited has waited until now.
        if call.stage is Stage.WAITING:
            call.waited_seconds = time.perf_counter() - call.wait_began

    def close(self) -> None:
        """Write what waits to be written."""


def begin_recording(to: Recorder, call: CallRecord | None = None) -> None:
    """Make the running task, and tasks that it starts, record.

    Args:
        to: Where.
        call: The RPC that the task serves.
    """
    work_as(replace(tenancy(), recorder=to, call=call or RunningCall()))


def _running() -> tuple[Recorder, CallRecord] | None:
    now = tenancy()
    if isinstance(now.recorder, Recorder) and isinstance(now.call, CallRecord):
        return now.recorder, now.call
    return None


def record_caller(caller: Caller) -> None:
    """Record who makes the running call."""
    if (running := _running()) is not None:
        running[1].key, running[1].key_name = key_label(caller), caller.key_name


def record_waiting() -> None:
    """Record that the running call waits to be admitted."""
    if (running := _running()) is not None:
        running[0].call_waits(running[1])


def record_running() -> None:
    """Record that the running call was admitted."""
    if (running := _running()) is not None:
        running[0].call_runs(running[1])


def record_failure(status: str, error: str) -> None:
    """Record that the running call failed, before its caller can know it.

    Args:
        status: The name of its status code.
        error: The error that the caller receives.
    """
    if (running := _running()) is not None:
        running[1].status, running[1].error = status, error
        record_end(*running)


def record_end(to: Recorder, call: CallRecord) -> None:
    """Record that a call ended."""
    call.seconds = time.perf_counter() - call.began
    to.call_ended(call)
    call.stage = Stage.ENDED


def _to_each(method: Callable[Concatenate[Any, _P], None]) -> Callable[Concatenate[Any, _P], None]:
    """Return a method that calls this one of each part."""

    def passed_on(together: Together, /, *args: _P.args, **kwargs: _P.kwargs) -> None:
        for part in together._parts:
            # By name, since a part may override the method.
            getattr(part, method.__name__)(*args, **kwargs)

    return passed_on


class Together(Recorder):
    """Passes everything on to several recorders.

    Args:
        parts: The recorders; each sees what those before it wrote into a call.
    """

    def __init__(self, parts: Sequence[Recorder]) -> None:
        self._parts = tuple(parts)
        self.wants_items = any(part.wants_items for part in parts)

    @property
    def parts(self) -> Sequence[Recorder]:
        """The recorders."""
        return self._parts

    def call_begun(self, call: CallRecord, metadata: Iterable[tuple[str, str | bytes]]) -> None:
        """Pass it on."""
        # It may be an iterator, which the first part would use up.
        headers = tuple(metadata)
        for part in self._parts:
            part.call_begun(call, headers)

    call_waits = _to_each(Recorder.call_waits)
    call_runs = _to_each(Recorder.call_runs)
    call_ended = _to_each(Recorder.call_ended)
    items_scored = _to_each(Recorder.items_scored)
    items_evaluated = _to_each(Recorder.items_evaluated)
    judge_called = _to_each(Recorder.judge_called)
    budget_refused = _to_each(Recorder.budget_refused)
    looked_up = _to_each(Recorder.looked_up)
    fell_back = _to_each(Recorder.fell_back)

    @contextmanager
    def span(self, name: str, attributes: Attributes) -> Iterator[None]:
        """Pass it on."""
        with ExitStack() as stack:
            for part in self._parts:
                stack.enter_context(part.span(name, attributes))
            yield
