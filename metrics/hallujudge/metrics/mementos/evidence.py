"""Evidence of a Mementos item: keywords and their matches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ..framework.result import JsonValue

__all__ = ["KeywordEvidence", "MatchedKeyword", "MementosEvidence", "NearKeyword"]

Span = tuple[int, int]


class MatchedKeyword(NamedTuple):
    """A predicted keyword and the reference keyword that it matches."""

    predicted: str
    """The predicted keyword."""
    reference: str
    """The reference keyword."""


class NearKeyword(NamedTuple):
    """A hallucinated keyword and a missed one that are close, but not synonyms."""

    predicted: str
    """The hallucinated keyword."""
    reference: str
    """The missed keyword."""
    why: str
    """``spelling``, ``direction``, ``root`` or ``word``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordEvidence:
    """Matches of one kind of keywords: objects or behaviours."""

    reference: tuple[str, ...] = ()
    """Keywords of the human description."""
    predicted: tuple[str, ...] = ()
    """Keywords of the model's description."""
    matched: tuple[MatchedKeyword, ...] = ()
    """Matching pairs."""
    hallucinated: tuple[str, ...] = ()
    """Predicted keywords without a match."""
    missed: tuple[str, ...] = ()
    """Reference keywords without a match."""
    unknown: tuple[str, ...] = ()
    """Keywords that the synonym graph does not know."""
    near: tuple[NearKeyword, ...] = ()
    """Near misses."""
    reference_spans: tuple[Span, ...] = ()
    """Positions of the reference keywords in the human description; empty for given keywords."""
    predicted_spans: tuple[Span, ...] = ()
    """Positions of the predicted keywords in the model's description."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return everything but the keyword lists, which :class:`MementosEvidence` writes."""
        spans: dict[str, JsonValue] = {}
        if self.reference_spans:
            spans["reference_spans"] = [list(span) for span in self.reference_spans]
        if self.predicted_spans:
            spans["predicted_spans"] = [list(span) for span in self.predicted_spans]
        return {
            "matched": [list(pair) for pair in self.matched],
            "hallucinated": list(self.hallucinated),
            "missed": list(self.missed),
            "unknown": list(self.unknown),
            "near": [list(miss) for miss in self.near],
            **spans,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class MementosEvidence:
    """Evidence of a description's scores.

    The keyword lists have the names that ``--keywords`` reads, so that ``items.jsonl`` can be
    scored again with another graph, without extracting them again.
    """

    domain: str = ""
    """The domain whose graphs were used."""
    extractor: str = ""
    """The extractor that found the keywords; empty for given keywords."""
    episode_length: int | None = None
    """Number of events in the sequence; the number of reference behaviours if it was not given."""
    objects: KeywordEvidence = field(default_factory=KeywordEvidence)
    """Matches of objects."""
    behaviors: KeywordEvidence = field(default_factory=KeywordEvidence)
    """Matches of behaviours."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the domain, the four keyword lists, and the matches of both kinds."""
        return {
            "domain": self.domain,
            "extractor": self.extractor,
            "episode_length": self.episode_length,
            "reference_objects": list(self.objects.reference),
            "predicted_objects": list(self.objects.predicted),
            "reference_behaviors": list(self.behaviors.reference),
            "predicted_behaviors": list(self.behaviors.predicted),
            "objects": self.objects.to_json(),
            "behaviors": self.behaviors.to_json(),
        }
