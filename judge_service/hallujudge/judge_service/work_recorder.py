"""Recording of work in the layers below the server. The base class records nothing.

The engine, judges and language model clients report to the recorder of the running task's
:class:`.tenancy.Tenancy`. They import nothing of the server's room ``observe``, which overrides
these methods to count, trace and log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TypeAlias

from msgspec import Struct

Attributes: TypeAlias = Mapping[str, str | int | float | bool]
"""The attributes of a span."""
Outcomes: TypeAlias = Mapping[str, int]
"""Reason -> number of unscored items; the empty reason has the scored items."""

_NO_SPAN = nullcontext()


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
