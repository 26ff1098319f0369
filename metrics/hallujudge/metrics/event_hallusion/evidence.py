"""Evidence of an EventHallusion item."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ..framework.result import JsonValue

__all__ = ["EventHallusionEvidence", "EventVerdict"]


class EventVerdict(NamedTuple):
    """The outcome of one question."""

    question: str
    """The question."""
    label: str
    """The right answer."""
    answer: str | None
    """The parsed answer, ``yes`` or ``no``; None for an unparsed response."""
    correct: bool | None
    """Whether the answer counts as right; None if it does not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventHallusionEvidence:
    """Evidence of a video's scores."""

    answers: tuple[EventVerdict, ...]
    """One verdict for each question."""
    judgement: str | None
    """The parsed judgement, ``yes`` or ``no``; None if it is missing or unparsed."""
    description_correct: bool | None
    """Whether the description counts as right; None if it does not count."""
    given: str | None = None
    """The parsed judgement that came with the video, where another judge was asked."""
    margin: float | None = None
    """The judge's log-probability of its choice minus that of the runner-up."""
    probability: float | None = None
    """The judge's probability that the description is right."""
    judging: tuple[dict[str, JsonValue], ...] = field(default=())
    """The judges that were called, in order; empty: none was."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return each question's outcome, the description's, and the judges that were called."""
        line: dict[str, JsonValue] = {
            "answers": [dict(verdict._asdict()) for verdict in self.answers],
            "judgement": self.judgement,
            "description_correct": self.description_correct,
        }
        if self.judging:
            line |= {
                "given": self.given,
                "margin": self.margin,
                "probability": self.probability,
                "judging": list(self.judging),
            }
        return line
