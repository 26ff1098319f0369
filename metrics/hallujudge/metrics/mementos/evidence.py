"""Evidence of a Mementos item: keywords, and which of them match."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ..framework.result import JsonValue

__all__ = ["KeywordEvidence", "MatchedKeyword", "MementosEvidence", "NearKeyword"]

Span = tuple[int, int]


class MatchedKeyword(NamedTuple):
    """A predicted keyword and the reference keyword that it names."""

    predicted: str
    """The predicted keyword."""
    reference: str
    """The reference keyword."""


class NearKeyword(NamedTuple):
    """A hallucinated keyword and a missed one that are close, but not synonyms."""

    predicted: str
    """The hallucinated keyword."""
    reference: str
    """The missed one."""
    why: str
    """``spelling``, ``direction``, ``root`` or ``word``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordEvidence:
    """One kind of keywords, objects or behaviours, matched."""

    reference: tuple[str, ...] = ()
    """Keywords of the human description."""
    predicted: tuple[str, ...] = ()
    """Keywords of the model's description."""
    matched: tuple[MatchedKeyword, ...] = ()
    """Which of them match."""
    hallucinated: tuple[str, ...] = ()
    """Predicted keywords that match none."""
    missed: tuple[str, ...] = ()
    """Reference keywords that none matches."""
    unknown: tuple[str, ...] = ()
    """Keywords that the synonym graph does not know."""
    near: tuple[NearKeyword, ...] = ()
    """Near misses."""
    reference_spans: tuple[Span, ...] = ()
    """Positions of the reference keywords in the human description; empty: they were given."""
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
    """What a description's scores are based on.

    The keyword lists have the names that ``--keywords`` reads, so that ``items.jsonl`` can
    be scored again with another graph, and nothing is extracted twice.
    """

    domain: str = ""
    """The domain whose graphs were used."""
    extractor: str = ""
    """The extractor that found the keywords; empty: they were given."""
    episode_length: int | None = None
    """How many events the sequence shows: the reference behaviours, unless it was given."""
    objects: KeywordEvidence = field(default_factory=KeywordEvidence)
    """Objects."""
    behaviors: KeywordEvidence = field(default_factory=KeywordEvidence)
    """Behaviours."""

    def to_json(self) -> dict[str, JsonValue]:
        """Domain, the four lists, and what matches in either kind."""
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
