"""Claims and their verdicts."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass

from .result import JsonValue
from .triplets import ClaimParts, Triplet

__all__ = ["ClaimVerdict", "Part", "Verdict"]


class Verdict(enum.Enum):
    """A judge's verdict on a claim."""

    SUPPORTED = "supported"
    """The scene graph states or implies the claim."""
    NOT_SUPPORTED = "not_supported"
    """The scene graph does not support the claim: it is hallucinated."""
    UNSCORED = "unscored"
    """The judge gave no verdict that can be read; a reason says why. Never guessed."""


class Part(enum.Enum):
    """The part of a triplet that is wrong."""

    SUBJECT = "subject"
    """The image lacks the subject."""
    OBJECT = "object"
    """The image lacks the object."""
    RELATION = "relation"
    """The image has both objects, but not so related."""

    @classmethod
    def of(cls, wrong: Iterable[Part]) -> Part | None:
        """The part that a claim with several wrong parts counts under.

        A relation is hallucinated only where both objects exist (section 3.1 of the paper), so that
        a claim with a wrong object is an object hallucination whatever its relation is.
        """
        return min(wrong, key=list(cls).index, default=None)

    @property
    def is_object(self) -> bool:
        """Whether it counts as object hallucination."""
        return self is not Part.RELATION


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimVerdict:
    """A claim and its verdict."""

    triplet: ClaimParts
    """The claim: a triplet, or a sentence in the sentence-level baseline."""
    verdict: Verdict
    """Supported, not supported or unscored."""
    part: Part | None = None
    """Which part is wrong, where the claim is not supported and the judge says so."""
    score: float | None = None
    """The matcher's similarity or entailment probability."""
    margin: float | None = None
    """How sure the judge was: for a matcher the distance to the threshold, for a language model the
    log-probability of its answer less that of the best other one."""
    judge: str = ""
    """Name of the judge."""
    references: tuple[Triplet, ...] = ()
    """The reference triplets that it was checked against, as a matcher kept them. Empty: all of the
    scene graph, which a language model reads and the item's evidence holds once."""
    span: tuple[int, int] | None = None
    """Position in the response: first character, one past the last."""
    within_words: int | None = None
    """How many words the response has up to the claim's end; None where its place isn't known."""
    prediction_error: bool = False
    """Whether the image has all parts of a claim that is not supported, but not so paired."""
    reason: str = ""
    """Why there is no verdict, such as ``REFERENCE_MISSING``."""
    detail: str = ""
    """The reason in words."""

    def to_json(self) -> dict[str, JsonValue]:
        """The entry of ``evidence.claims``."""
        line: dict[str, JsonValue] = {
            "triplet": list(self.triplet),
            "span": list(self.span) if self.span else None,
            "within_words": self.within_words,
            "verdict": self.verdict.value,
            "part": self.part.value if self.part else None,
            "prediction_error": self.prediction_error,
            "score": self.score,
            "margin": self.margin,
            "judge": self.judge,
            "references": [list(triplet) for triplet in self.references],
        }
        if self.reason:
            line["reason"] = self.reason
            line["detail"] = self.detail
        return line
