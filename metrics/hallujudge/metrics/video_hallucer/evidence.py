"""Evidence of a VideoHallucer item."""

from __future__ import annotations

from dataclasses import dataclass

from ..answers.evidence import AnswerEvidence
from ..framework.result import JsonValue

__all__ = ["VideoHallucerEvidence"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoHallucerEvidence:
    """What a pair's scores rest on."""

    basic: AnswerEvidence
    """The answer to the basic question."""
    hallucination: AnswerEvidence
    """The answer to the hallucinated one."""

    def to_json(self) -> dict[str, JsonValue]:
        """Both answers beside their labels."""
        return {"basic": self.basic.to_json(), "hallucination": self.hallucination.to_json()}
