"""Results of matching keyword lists."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

__all__ = ["KeywordCounts", "KeywordMatch", "KeywordPair", "KeywordVariant", "NearMiss"]

KeywordVariant: TypeAlias = Literal["published", "corrected"]


class KeywordCounts(NamedTuple):
    """How many different keywords of two lists match."""

    hits: int
    """Reference keywords that a prediction names (true positives)."""
    wrong: int
    """Predictions that name no reference keyword (false positives)."""
    missed: int
    """Reference keywords that no prediction names (false negatives)."""


class KeywordPair(NamedTuple):
    """A prediction and the reference keyword that it names."""

    predicted: str
    """The prediction as given; two that match together are joined by ``+``."""
    reference: str
    """The reference keyword as given."""


class NearMiss(NamedTuple):
    """A wrong prediction and a missed reference keyword that are close, but not synonyms."""

    predicted: str
    """The prediction."""
    reference: str
    """The reference keyword."""
    why: str
    """``spelling`` (the same word in two spellings), ``direction`` (the graph leads only from the
    reference to the prediction), ``root`` (they have a common root) or ``word`` (they share a
    word)."""


class KeywordMatch(NamedTuple):
    """The result of matching two keyword lists."""

    counts: KeywordCounts
    """The counts that scores are computed from."""
    matched: tuple[KeywordPair, ...]
    """Predictions that name a reference keyword, in order."""
    hallucinated: tuple[str, ...]
    """Different predictions that name no reference keyword, in order."""
    missed: tuple[str, ...]
    """Different reference keywords that no prediction names, in order."""
    unknown: tuple[str, ...]
    """Keywords of either list that the graph does not know, sorted."""
    near: tuple[NearMiss, ...]
    """The first 1,000 near misses, in the order of the predictions and then of the reference."""
