"""Keywords of texts, whoever takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import InvalidInputError
from ..extractors.values import DescriptionPair, Keyword, Keywords, PairKeywords
from .cpu import run_cpu
from .entry import FoundClaim
from .resources import Resources

if TYPE_CHECKING:
    from ..extractors.llm import Extraction

__all__ = ["GIVEN", "FoundKeywords", "FoundPair", "PairExtractor"]

GIVEN = "given"
"""Nobody takes keywords from texts: they must be there."""

_Spans = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundKeywords:
    """Keywords of one text with their places."""

    objects: tuple[str, ...] = ()
    """Objects, in the order of the text."""
    behaviors: tuple[str, ...] = ()
    """Behaviours, in the order of the text."""
    object_spans: _Spans = ()
    """Where objects stand; empty: the keywords were given."""
    behavior_spans: _Spans = ()
    """Where behaviours stand."""

    def of(self, role: str) -> tuple[str, ...]:
        """The keywords of ``objects`` or ``behaviors``."""
        return self.objects if role == "objects" else self.behaviors

    def spans(self, role: str) -> _Spans:
        """Their places."""
        return self.object_spans if role == "objects" else self.behavior_spans

    def claims(self) -> list[FoundClaim]:
        """All keywords with their kind, in the order of the text."""
        claims = [
            FoundClaim(start=start, end=end, claim=word, kind=role)
            for role in ("objects", "behaviors")
            for word, (start, end) in zip(self.of(role), self.spans(role), strict=True)
        ]
        return sorted(claims, key=lambda claim: (claim.start, claim.end))


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPair:
    """Keywords of two descriptions, or why there are none of either."""

    reference: FoundKeywords = FoundKeywords()
    """Of the human description."""
    predicted: FoundKeywords = FoundKeywords()
    """Of the model's description."""
    reason: str = ""
    """Why the descriptions could not be read; empty: they could."""
    detail: str = ""
    """The reason in words."""


class PairExtractor:
    """Any extractor as Mementos needs it: keywords with places, failures as values.

    Args:
        name: ``rules``, ``llm`` or ``given``.
        resources: Where the language model's extractor comes from.
    """

    def __init__(self, name: str, resources: Resources) -> None:
        from ..extractors import RuleKeywordExtractor

        self.name = name
        self._rules = RuleKeywordExtractor()
        self._llm = resources.judges.keyword_extractor() if name == "llm" else None

    @property
    def label(self) -> str:
        """The extractor's own label, for signatures."""
        if self.name == GIVEN:
            return GIVEN
        return self._llm.label if self._llm is not None else self._rules.label

    async def extract(self, pairs: Sequence[DescriptionPair]) -> list[FoundPair]:
        """The keywords of both descriptions of each pair, in order.

        A language model reads both with one call; rules read each text by itself.

        Raises:
            InvalidInputError: There are texts, but nobody to read them.
        """
        if not pairs:
            return []
        if self.name == GIVEN:
            raise InvalidInputError("extractor 'given' reads no texts; use 'rules' or 'llm'")
        if self._llm is not None:
            return [_answered(result) for result in await self._llm.try_many(pairs)]
        texts = dict.fromkeys(text for pair in pairs for text in (pair.reference, pair.predicted))
        # Reading a text takes some hundred times as long as going through it.
        chars = 100 * sum(map(len, texts))
        found = await run_cpu(
            lambda: {text: _found(self._rules.extract(text)) for text in texts}, chars=chars
        )
        return [
            FoundPair(reference=found[pair.reference], predicted=found[pair.predicted])
            for pair in pairs
        ]


def _answered(result: Extraction[PairKeywords]) -> FoundPair:
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
