"""Evidence of a VideoHallucer item."""

from __future__ import annotations

from dataclasses import dataclass

from ..answers.evidence import AnswerEvidence
from ..framework.result import JsonValue

__all__ = ["VideoHallucerEvidence"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoHallucerEvidence:
    """Evidence of a pair's scores."""

    basic: AnswerEvidence
    """The answer to the basic question."""
    hallucination: AnswerEvidence
    """The answer to the hallucinated question."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return both answers with their labels."""
        return {"basic": self.basic.to_json(), "hallucination": self.hallucination.to_json()}
