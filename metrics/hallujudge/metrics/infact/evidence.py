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
    """What was read; None: the answer is missing or could not be read."""
    correct: bool | None
    """Whether it is the label; None where nothing was read."""
    how: str
    """The rule that read it, or why none could."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InfactEvidence:
    """What a question's scores are based on."""

    label: str
    """What is right, as it was read."""
    runs: tuple[RunVerdict, ...]
    """One verdict for each run, base first."""

    def to_json(self) -> dict[str, JsonValue]:
        """The label and each operator's answer."""
        return {
            "label": self.label,
            "runs": {
                run.operator: {"answer": run.answer, "correct": run.correct, "how": run.how}
                for run in self.runs
            },
        }
