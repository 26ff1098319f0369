"""Evidence of an AMBER description; that of a question is an ``AnswerEvidence``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..framework.result import JsonValue

__all__ = ["AmberEvidence", "AmberWord"]


class AmberWord(NamedTuple):
    """An object word of a description."""

    word: str
    """The word."""
    verdict: str
    """``true``, ``safe`` or ``hallucinated``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AmberEvidence:
    """Evidence of a description's scores."""

    words: tuple[AmberWord, ...]
    """Its object words, with repetitions."""
    covered: tuple[str, ...]
    """Objects of the image that it names."""
    missed: tuple[str, ...]
    """Objects of the image that it does not name."""
    targets_said: tuple[str, ...]
    """Hallucination targets that it names."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return words with their verdicts, then objects and targets."""
        return {
            "words": [dict(word._asdict()) for word in self.words],
            "covered": list(self.covered),
            "missed": list(self.missed),
            "targets_said": list(self.targets_said),
        }
