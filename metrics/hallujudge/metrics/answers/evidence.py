"""Evidence of an answer."""

from __future__ import annotations

from dataclasses import dataclass

from ..framework.result import JsonValue

__all__ = ["AnswerEvidence"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerEvidence:
    """What an answer's score is based on."""

    answer: str | None
    """What was read: ``yes``, ``no`` or a letter; None: the answer could not be read."""
    label: str
    """What is right."""
    correct: bool
    """Whether the variant counts the answer as right."""
    how: str
    """The parser, or the rule of a parser with several, that read it."""

    def to_json(self) -> dict[str, JsonValue]:
        """The answer beside its label."""
        return {
            "answer": self.answer,
            "label": self.label,
            "correct": self.correct,
            "how": self.how,
        }
