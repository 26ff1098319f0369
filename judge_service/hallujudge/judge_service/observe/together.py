"""Several recorders as one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager

from .recorder import Attributes, Outcomes, Recorder
from .values import CallRecord, JudgeCall

__all__ = ["Together"]


class Together(Recorder):
    """Passes everything on to several recorders.

    Args:
        parts: The recorders; each sees what those before it wrote into a call.
    """

    def __init__(self, parts: Sequence[Recorder]) -> None:
        self._parts = tuple(parts)

    def call_begun(self, call: CallRecord, metadata: Iterable[tuple[str, str | bytes]]) -> None:
        """Pass it on."""
        headers = tuple(metadata)
        for part in self._parts:
            part.call_begun(call, headers)

    def call_waits(self, call: CallRecord) -> None:
        """Pass it on."""
        for part in self._parts:
            part.call_waits(call)

    def call_runs(self, call: CallRecord) -> None:
        """Pass it on."""
        for part in self._parts:
            part.call_runs(call)

    def call_ended(self, call: CallRecord) -> None:
        """Pass it on."""
        for part in self._parts:
            part.call_ended(call)

    def items_scored(self, metric: str, outcomes: Outcomes) -> None:
        """Pass it on."""
        for part in self._parts:
            part.items_scored(metric, outcomes)

    def judge_called(self, call: JudgeCall) -> None:
        """Pass it on."""
        for part in self._parts:
            part.judge_called(call)

    def budget_refused(self) -> None:
        """Pass it on."""
        for part in self._parts:
            part.budget_refused()

    def looked_up(self, found: str) -> None:
        """Pass it on."""
        for part in self._parts:
            part.looked_up(found)

    def fell_back(self, judge: str, reason: str) -> None:
        """Pass it on."""
        for part in self._parts:
            part.fell_back(judge, reason)

    def span(self, name: str, attributes: Attributes) -> AbstractContextManager[None]:
        """Pass it on."""
        return self._span(name, attributes)

    @contextmanager
    def _span(self, name: str, attributes: Attributes) -> Iterator[None]:
        with ExitStack() as stack:
            for part in self._parts:
                stack.enter_context(part.span(name, attributes))
            yield

    def close(self) -> None:
        """Close the recorders."""
        for part in self._parts:
            part.close()
