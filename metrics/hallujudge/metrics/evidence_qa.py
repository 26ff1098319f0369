"""What the outcomes of answers rest on: a yes or no, a choice, an order, a question's runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from .values import JsonValue

__all__ = ["AnswerEvidence", "InfactEvidence", "OrderEvidence", "RunVerdict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerEvidence:
    """What an answer's score rests on."""

    answer: str | None
    """What was read: ``yes``, ``no`` or a letter; None: the answer could not be read."""
    label: str
    """What is right."""
    correct: bool
    """Whether the reading counts the answer as right."""
    how: str
    """The reader, or the rule of a reader with several, that read it."""

    def to_json(self) -> dict[str, JsonValue]:
        """The answer beside its label."""
        return {
            "answer": self.answer,
            "label": self.label,
            "correct": self.correct,
            "how": self.how,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderEvidence:
    """What an order's scores rest on."""

    order: tuple[str, ...]
    """The letters that were read, in order."""
    ranks: tuple[int, ...]
    """The ranks behind them; 0 for a letter that was never shown."""
    problem: str = ""
    """Why the order is invalid: ``empty``, ``partial``, ``repeated``, ``unknown``; or empty."""

    def to_json(self) -> dict[str, JsonValue]:
        """The order, the ranks behind it and what is wrong with it."""
        return {
            "order": list(self.order),
            "ranks": list(self.ranks),
            "valid": not self.problem,
            "problem": self.problem,
        }


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
    """What a question's scores rest on."""

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
