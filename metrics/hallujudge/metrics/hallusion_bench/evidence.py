"""Evidence of a HallusionBench item."""

from __future__ import annotations

from dataclasses import dataclass

from ..framework.result import JsonValue

__all__ = ["HallusionBenchEvidence"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HallusionBenchEvidence:
    """What an answer's scores rest on."""

    answer: str | None
    """The parsed answer, ``yes`` or ``no``; None: it was not parsed, or could not be."""
    label: str
    """The right answer; empty where it is not known."""
    correctness: int
    """1 right, 0 wrong, 2 unclear."""
    correct: bool
    """Whether it counts as right; an unclear answer does where there is no figure."""
    how: str
    """Where the correctness comes from: ``given`` or the answer parser."""

    def to_json(self) -> dict[str, JsonValue]:
        """The correctness, and what it was made of."""
        return {
            "answer": self.answer,
            "label": self.label,
            "correctness": self.correctness,
            "correct": self.correct,
            "how": self.how,
        }
