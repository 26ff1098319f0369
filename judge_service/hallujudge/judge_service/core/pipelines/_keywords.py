"""Keywords of texts, whoever takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import InvalidInputError
from ...extractors.values import Keyword, Keywords
from ..cpu import run_cpu
from ..entry import FoundClaim
from ..resources import Resources

__all__ = ["GIVEN", "FoundKeywords", "KeywordSource"]

GIVEN = "given"
"""Nobody takes keywords from texts: they must be there."""

_Spans = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundKeywords:
    """Keywords of one text with their places, or why there are none."""

    objects: tuple[str, ...] = ()
    """Objects, in the order of the text."""
    behaviors: tuple[str, ...] = ()
    """Behaviours, in the order of the text."""
    object_spans: _Spans = ()
    """Where objects stand; empty: the keywords were given."""
    behavior_spans: _Spans = ()
    """Where behaviours stand."""
    reason: str = ""
    """Why the text could not be read; empty: it could."""
    detail: str = ""
    """The reason in words."""

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


class KeywordSource:
    """Any extractor as Mementos needs it: keywords with places, failures as values.

    Args:
        name: ``rules``, ``llm`` or ``given``.
        resources: Where the language model's extractor comes from.
    """

    def __init__(self, name: str, resources: Resources) -> None:
        from ...extractors import RuleKeywordExtractor

        self.name = name
        self._rules = RuleKeywordExtractor()
        self._llm = resources.judges.keyword_extractor() if name == "llm" else None

    @property
    def label(self) -> str:
        """The extractor's own label, for signatures."""
        if self.name == GIVEN:
            return GIVEN
        return self._llm.label if self._llm is not None else self._rules.label

    async def extract(self, texts: Sequence[str]) -> list[FoundKeywords]:
        """The keywords of each text, in order.

        Raises:
            InvalidInputError: There are texts, but nobody to read them.
        """
        if not texts:
            return []
        if self.name == GIVEN:
            raise InvalidInputError("extractor 'given' reads no texts; use 'rules' or 'llm'")
        if self._llm is not None:
            return [
                FoundKeywords(reason=result.reason, detail=result.detail)
                if result.found is None
                else _found(result.found)
                for result in await self._llm.try_many(texts)
            ]
        # Reading a text takes some hundred times as long as going through it.
        chars = 100 * sum(map(len, texts))
        return await run_cpu(
            lambda: [_found(self._rules.extract(text)) for text in texts], chars=chars
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
