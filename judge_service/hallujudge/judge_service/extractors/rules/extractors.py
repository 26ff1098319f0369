"""The rule-based extractors of triplets, keywords and nouns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from ...access.turns import RULES_EFFORT, map_cpu
from ..values import ExtractedTriplet, Keywords
from .analysis import Analyser, shared_analyser
from .keywords import KeywordRules
from .triplets import TripletRules

__all__ = ["LABEL", "RuleKeywordExtractor", "RuleNounExtractor", "RuleTripletExtractor"]

LABEL = "rules-2"
"""The version of the rules and the lexicon, increased when their results change."""

_FoundT = TypeVar("_FoundT")


class _RuleExtractor(ABC, Generic[_FoundT]):
    """What the extractors share.

    Args:
        analyser: The analyser; None: the shipped one.
    """

    def __init__(self, analyser: Analyser | None = None) -> None:
        self._analyser = analyser

    @property
    def label(self) -> str:
        """``rules-2``: rules and lexicon together."""
        return LABEL

    @abstractmethod
    def extract(self, text: str) -> _FoundT:
        """Return what is found in one text."""

    async def extract_many(self, texts: Sequence[str]) -> list[_FoundT]:
        """Return what is found in each text, while a server serves other calls."""
        return await map_cpu(self.extract, texts, chars=lambda text: RULES_EFFORT * len(text))

    def analyser(self) -> Analyser:
        """Return the analyser; the shipped one is loaded on first use."""
        return self._analyser or shared_analyser()


class RuleTripletExtractor(_RuleExtractor[list[ExtractedTriplet]]):
    """Extracts (subject, relation, object) claims from texts by rules, without a model."""

    def extract(self, text: str) -> list[ExtractedTriplet]:
        """Return the claims of one text, in its order."""
        analyser = self.analyser()
        rules = TripletRules(analyser.lexicon)
        for chunks in analyser.chunks(text):
            rules.sentence(chunks)
        return rules.found


class RuleKeywordExtractor(_RuleExtractor[Keywords]):
    """Extracts object and behaviour keywords from texts by rules, without a model."""

    def extract(self, text: str) -> Keywords:
        """Return the keywords of one text."""
        analyser = self.analyser()
        rules = KeywordRules(analyser.lexicon)
        for chunks in analyser.chunks(text):
            rules.sentence(chunks)
        return Keywords(
            objects=tuple(rules.objects.values()), behaviors=tuple(rules.behaviors.values())
        )


class RuleNounExtractor(_RuleExtractor[tuple[str, ...]]):
    """Extracts the nouns of texts by rules, without a model: single words in the singular."""

    def extract(self, text: str) -> tuple[str, ...]:
        """Return the nouns of one text in its order, repeats included."""
        return tuple((self.analyser()).nouns(text))
