"""Evidence of a HallusionBench item."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..framework.result import JsonValue

__all__ = ["HallusionBenchEvidence"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HallusionBenchEvidence:
    """Evidence of an answer's scores."""

    answer: str | None
    """The parsed answer, ``yes`` or ``no``; None for an unparsed answer."""
    label: str
    """The right answer; empty if unknown."""
    correctness: int
    """1 right, 0 wrong, 2 unclear."""
    correct: bool
    """Whether it counts as right; an unclear answer does if there is no figure."""
    how: str
    """Where the correctness comes from: ``given``, ``llm``, ``router`` or the answer parser."""
    given: int | None = None
    """The correctness that came with the answer, where another source was chosen."""
    margin: float | None = None
    """The judge's log-probability of its choice minus that of the runner-up."""
    probability: float | None = None
    """The judge's probability that the answer counts as right."""
    judging: tuple[dict[str, JsonValue], ...] = field(default=())
    """The judges that were called, in order; empty: none was."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the correctness, what it was made of, and the judges where some were called."""
        line: dict[str, JsonValue] = {
            "answer": self.answer,
            "label": self.label,
            "correctness": self.correctness,
            "correct": self.correct,
            "how": self.how,
        }
        if self.given is not None:
            line["given"] = self.given
        if self.judging:
            line |= {
                "margin": self.margin,
                "probability": self.probability,
                "judging": list(self.judging),
            }
        return line
