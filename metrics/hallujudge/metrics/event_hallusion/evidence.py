"""Evidence of an EventHallusion item."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ..framework.result import JsonValue

__all__ = ["EventHallusionEvidence", "EventVerdict"]


class EventVerdict(NamedTuple):
    """The outcome of one question."""

    question: str
    """The question that was asked."""
    label: str
    """The right answer."""
    answer: str | None
    """The parsed answer, ``yes`` or ``no``; None: the response could not be parsed."""
    correct: bool | None
    """Whether the answer counts as right; None: it does not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventHallusionEvidence:
    """What a video's scores are based on."""

    answers: tuple[EventVerdict, ...]
    """One verdict for each question."""
    judgement: str | None
    """The parsed judgement, ``yes`` or ``no``; None: it could not be parsed, or there is none."""
    description_correct: bool | None
    """Whether the description counts as right; None: it does not count."""
    held: str | None = None
    """The parsed judgement that came with the video, where another judge was asked."""
    margin: float | None = None
    """The judge's log-probability of its choice minus that of the runner-up."""
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
            line |= {"held": self.held, "margin": self.margin, "judging": list(self.judging)}
        return line
