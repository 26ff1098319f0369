"""Where the layers record what they do. The base class records nothing."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import TypeAlias

from hallujudge.metrics import ItemResult, Outcome

from ..access.caller import Caller
from .values import CallRecord, JudgeCall, Stage, key_label

__all__ = [
    "Attributes",
    "Outcomes",
    "Recorder",
    "begin_recording",
    "record_caller",
    "record_failure",
    "record_items",
    "record_outcomes",
    "record_running",
    "record_waiting",
    "recorder",
]

Attributes: TypeAlias = Mapping[str, str | int | float | bool]
"""What a span says."""
Outcomes: TypeAlias = Mapping[str, int]
"""Reason -> number of unscored items; the empty reason has the scored items."""


_UNSEEN = nullcontext()


class Recorder:
    """Records nothing. What shows a server's work overrides some of these methods."""

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
        if call.stage is Stage.WAITING:
            call.waited_seconds = time.perf_counter() - call.wait_began

    def items_scored(self, metric: str, outcomes: Outcomes) -> None:
        """Items got their outcomes."""

    def judge_called(self, call: JudgeCall) -> None:
        """A language model was called."""

    def budget_refused(self) -> None:
        """A call to a language model was not sent, because a budget is spent."""

    def looked_up(self, found: str) -> None:
        """A reply was looked up.

        Args:
            found: Where it was found: ``memory``, ``cache``, or ``nowhere``.
        """

    def fell_back(self, judge: str, reason: str) -> None:
        """A claim or question went on to the next judge.

        Args:
            judge: The judge that gave no verdict.
            reason: Why.
        """

    def span(self, name: str, attributes: Attributes) -> AbstractContextManager[None]:  # noqa: ARG002
        """Return a block of work that shows in traces."""
        return _UNSEEN

    def close(self) -> None:
        """Write what waits to be written."""


_NOWHERE = Recorder()
_RECORDER: ContextVar[Recorder] = ContextVar("hallujudge_recorder", default=_NOWHERE)
_CALL: ContextVar[CallRecord | None] = ContextVar("hallujudge_call", default=None)


def recorder() -> Recorder:
    """Return where the running task records; tasks and threads inherit it."""
    return _RECORDER.get()


def begin_recording(to: Recorder, call: CallRecord | None = None) -> None:
    """Make the running task, and tasks that it starts, record.

    Args:
        to: Where.
        call: The RPC that the task serves.
    """
    _RECORDER.set(to)
    _CALL.set(call)


def record_caller(caller: Caller) -> None:
    """Record who makes the running call."""
    if (call := _CALL.get()) is not None:
        call.key = key_label(caller)


def record_waiting() -> None:
    """Record that the running call waits to be admitted."""
    if (call := _CALL.get()) is not None:
        recorder().call_waits(call)


def record_running() -> None:
    """Record that the running call was admitted."""
    if (call := _CALL.get()) is not None:
        recorder().call_runs(call)


def record_failure(status: str, error: str) -> None:
    """Record that the running call fails.

    Args:
        status: The name of its status code.
        error: What the caller is told.
    """
    if (call := _CALL.get()) is not None:
        call.status, call.error = status, error


def record_items(metric: str, results: Sequence[ItemResult]) -> None:
    """Record outcomes of items, for the running call too."""
    outcomes: dict[str, int] = {}
    for one in results:
        reason = "" if one.outcome is Outcome.SCORED else str(one.reason) or "other"
        outcomes[reason] = outcomes.get(reason, 0) + 1
    record_outcomes(metric, outcomes)


def record_outcomes(metric: str, outcomes: Outcomes) -> None:
    """Record outcomes that were counted, for the running call too."""
    if (call := _CALL.get()) is not None:
        call.metric = metric
        scored = outcomes.get("", 0)
        call.scored += scored
        call.unscored += sum(outcomes.values()) - scored
    recorder().items_scored(metric, outcomes)
