"""Evidence of an INFACT item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..framework.result import JsonValue

__all__ = ["InfactEvidence", "RunVerdict"]


class RunVerdict(NamedTuple):
    """A question's outcome under one operator."""

    operator: str
    """The operator; ``base`` for the base condition."""
    answer: str | None
    """The parsed answer; None if it is missing or could not be parsed."""
    correct: bool | None
    """Whether it equals the label; None for an unparsed answer."""
    how: str
    """The rule that parsed it, or why none did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InfactEvidence:
    """Evidence of a question's scores."""

    label: str
    """The right answer, as parsed."""
    runs: tuple[RunVerdict, ...]
    """One verdict for each run, base first."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the label and each operator's answer."""
        return {
            "label": self.label,
            "runs": {
                run.operator: {"answer": run.answer, "correct": run.correct, "how": run.how}
                for run in self.runs
            },
        }
