"""Evidence of an answer."""

from __future__ import annotations

from dataclasses import dataclass

from ..framework.result import JsonValue

__all__ = ["AnswerEvidence"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerEvidence:
    """Evidence of an answer's score."""

    answer: str | None
    """The parsed answer: ``yes``, ``no`` or a letter; None if it could not be parsed."""
    label: str
    """The right answer."""
    correct: bool
    """Whether the variant counts the answer as right."""
    how: str
    """Name of the parser, or of its rule, that parsed the answer."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the answer with its label."""
        return {
            "answer": self.answer,
            "label": self.label,
            "correct": self.correct,
            "how": self.how,
        }
