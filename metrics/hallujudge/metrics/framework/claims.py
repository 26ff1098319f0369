"""Claims and their verdicts."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass

from .result import JsonValue
from .triplets import ClaimParts, Triplet

__all__ = [
    "LANGUAGE_MODELS",
    "ClaimVerdict",
    "Modality",
    "Part",
    "Verdict",
    "certainty",
    "stated_probability",
    "support_probability",
]

LANGUAGE_MODELS = ("llm", "fallback")
"""The names of judges that are language models, in evidence."""
_SIMILARITY_JUDGE = "matcher"


def certainty(margin: float, judge: str) -> float:
    """Return how sure a judge is of a verdict, from its margin.

    The margin of a matcher or small judge is a distance from a threshold; its sign says which
    verdict it gives. That of a language model belongs to the answer that it gave. Below 0, it found
    another answer likelier and was held to the offered ones, so that it is least sure.

    Args:
        margin: The verdict's margin.
        judge: Name of the judge in evidence.
    """
    return margin if judge in LANGUAGE_MODELS else abs(margin)


class Modality(enum.Enum):
    """How a response puts a claim."""

    STATED = "stated"
    """As a fact."""
    HEDGED = "hedged"
    """As a guess or one of several alternatives: "might be", "possibly", "red or blue"."""
    CONDITIONAL = "conditional"
    """As a condition or its consequence: "if the wind stops"."""


class Verdict(enum.Enum):
    """A judge's verdict on a claim."""

    SUPPORTED = "supported"
    """The scene graph states or implies the claim."""
    NOT_SUPPORTED = "not_supported"
    """The scene graph does not support the claim: it is hallucinated."""
    UNSCORED = "unscored"
    """The judge gave no valid verdict; a reason says why."""


class Part(enum.Enum):
    """The part of a triplet that is wrong."""

    SUBJECT = "subject"
    """The image lacks the subject."""
    OBJECT = "object"
    """The image lacks the object."""
    RELATION = "relation"
    """The image has both objects, but not this relation."""

    @classmethod
    def of(cls, wrong: Iterable[Part]) -> Part | None:
        """Return the part under which a claim with several wrong parts is counted.

        A relation is hallucinated only where both objects exist (section 3.1 of the paper), so that
        a claim with a wrong object is an object hallucination whatever its relation is.
        """
        return min(wrong, key=list(cls).index, default=None)

    @property
    def is_object(self) -> bool:
        """Return whether the part counts as object hallucination."""
        return self is not Part.RELATION


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimVerdict:
    """A claim and its verdict."""

    triplet: ClaimParts
    """The claim: a triplet, or a sentence in the sentence-level baseline."""
    verdict: Verdict
    """Supported, not supported or unscored."""
    part: Part | None = None
    """The wrong part of an unsupported claim, if the judge names it."""
    score: float | None = None
    """A matcher's similarity; of other judges the probability that the claim is supported."""
    margin: float | None = None
    """The judge's confidence: for a matcher the distance to the threshold, for a language model the
    log-probability of its answer minus that of the runner-up."""
    judge: str = ""
    """Name of the judge."""
    references: tuple[Triplet, ...] = ()
    """The reference triplets that a matcher checked the claim against. Empty: all of the
    scene graph, which a language model reads and the item's evidence holds only once."""
    span: tuple[int, int] | None = None
    """Position in the response: first character and the position after the last."""
    within_words: int | None = None
    """Words of the response up to the claim's end; None if the claim has no position."""
    modality: Modality | None = None
    """How the response puts the claim; None if the extractor does not tell."""
    prediction_error: bool = False
    """Whether the image has all parts of an unsupported claim, but not in this combination."""
    reason: str = ""
    """Why there is no verdict, such as ``REFERENCE_MISSING``."""
    detail: str = ""
    """Details of the reason; of a verdict, how the judge's input was cut, if it was too long."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the entry of ``evidence.claims``."""
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
        if self.modality is not None:
            line["modality"] = self.modality.value
        if self.reason:
            line["reason"] = self.reason
        if self.reason or self.detail:
            line["detail"] = self.detail
        return line


def support_probability(claim: ClaimVerdict) -> float | None:
    """Return the probability of support that a claim's judge states; None: it states none."""
    return stated_probability(claim.judge, claim.score)


def stated_probability(judge: str, score: float | None) -> float | None:
    """Return the probability of support that a judge's score is; None: it is none.

    The score of a matcher is a similarity, and not a probability.
    """
    return None if judge == _SIMILARITY_JUDGE else score
