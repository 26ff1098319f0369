"""Extraction of keywords from descriptions, by rules or a language model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..access.turns import RULES_EFFORT, map_cpu
from ..errors import InvalidInputError
from ..extractors.values import DescriptionPair, Keyword, Keywords, PairKeywords
from .entry import FoundClaim
from .resources import Resources

if TYPE_CHECKING:
    from ..extractors.llm import Extraction

__all__ = ["GIVEN", "FoundKeywords", "FoundPair", "PairExtractor"]

GIVEN = "given"
"""The extractor name for items that come with keywords: nothing is extracted."""

_Spans = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundKeywords:
    """Keywords of one description, with their places."""

    objects: tuple[str, ...] = ()
    """Objects, in the order of the text."""
    behaviors: tuple[str, ...] = ()
    """Behaviours, in the order of the text."""
    object_spans: _Spans = ()
    """The places of the objects; empty: the keywords were given."""
    behavior_spans: _Spans = ()
    """The places of the behaviours."""

    def of(self, role: str) -> tuple[str, ...]:
        """Return the keywords of ``objects`` or ``behaviors``."""
        return self.objects if role == "objects" else self.behaviors

    def spans(self, role: str) -> _Spans:
        """Return the places of these keywords."""
        return self.object_spans if role == "objects" else self.behavior_spans

    def claims(self) -> list[FoundClaim]:
        """Return all keywords with their kind, in the order of the text."""
        claims = [
            FoundClaim(start=start, end=end, claim=word, kind=role)
            for role in ("objects", "behaviors")
            for word, (start, end) in zip(self.of(role), self.spans(role), strict=True)
        ]
        return sorted(claims, key=lambda claim: (claim.start, claim.end))


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPair:
    """Keywords of two descriptions, or the reason why extraction failed."""

    reference: FoundKeywords = FoundKeywords()
    """The keywords of the human description."""
    predicted: FoundKeywords = FoundKeywords()
    """The keywords of the model's description."""
    reason: str = ""
    """Why extraction failed; empty: it succeeded."""
    detail: str = ""
    """A sentence about the reason."""


class PairExtractor:
    """Extracts keywords with places from pairs of descriptions; failures are values, not errors.

    Args:
        name: ``rules``, ``llm`` or ``given``.
        resources: Provides the language model.
    """

    def __init__(self, name: str, resources: Resources) -> None:
        from ..extractors import RuleKeywordExtractor

        self.name = name
        self._rules = RuleKeywordExtractor()
        self._llm = resources.judges.keyword_extractor() if name == "llm" else None

    @property
    def label(self) -> str:
        """The extractor's label, for signatures."""
        if self.name == GIVEN:
            return GIVEN
        return self._llm.label if self._llm is not None else self._rules.label

    async def extract(self, pairs: Sequence[DescriptionPair]) -> list[FoundPair]:
        """Return the keywords of both descriptions of each pair, in order.

        A language model reads a pair in one call; rules read each description separately.

        Raises:
            InvalidInputError: There are descriptions, but the extractor is ``given``.
        """
        if not pairs:
            return []
        if self.name == GIVEN:
            raise InvalidInputError(
                "extractor 'given' extracts nothing from texts; use 'rules' or 'llm'"
            )
        if self._llm is not None:
            return [_pair_of(result) for result in await self._llm.try_many(pairs)]
        texts = list(
            dict.fromkeys(text for pair in pairs for text in (pair.reference, pair.predicted))
        )
        keywords = await map_cpu(
            lambda text: _found(self._rules.extract(text)),
            texts,
            chars=lambda text: RULES_EFFORT * len(text),
        )
        found = dict(zip(texts, keywords, strict=True))
        return [
            FoundPair(reference=found[pair.reference], predicted=found[pair.predicted])
            for pair in pairs
        ]


def _pair_of(result: Extraction[PairKeywords]) -> FoundPair:
    if result.found is None:
        return FoundPair(reason=result.reason, detail=result.detail)
    return FoundPair(
        reference=_found(result.found.reference), predicted=_found(result.found.predicted)
    )


def _found(keywords: Keywords) -> FoundKeywords:
    return FoundKeywords(
        objects=_words(keywords.objects),
        behaviors=_words(keywords.behaviors),
        object_spans=_spans(keywords.objects),
        behavior_spans=_spans(keywords.behaviors),
    )


def _words(keywords: Sequence[Keyword]) -> tuple[str, ...]:
    return tuple(keyword.text for keyword in keywords)


def _spans(keywords: Sequence[Keyword]) -> _Spans:
    return tuple((keyword.start, keyword.end) for keyword in keywords)
