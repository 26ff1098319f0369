"""The rule extractors: one analysis of the text behind two views of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ..values import ExtractedTriplet, Keywords
from .analysis import Analyser, shared_analyser
from .keywords import KeywordRules
from .triplets import TripletRules

__all__ = ["LABEL", "RuleKeywordExtractor", "RuleTripletExtractor"]

LABEL = "rules-1"
"""Version of the rules and the lexicon together; any change of what they find changes it."""


class RuleTripletExtractor:
    """Takes (object, relation, object) claims out of texts by rule, without any model.

    Args:
        analyser: Another analysis than the shipped one; for comparisons.
    """

    def __init__(self, analyser: Analyser | None = None) -> None:
        self._analyser = analyser

    @property
    def label(self) -> str:
        """``rules-1``: rules and lexicon together."""
        return LABEL

    def extract(self, text: str) -> list[ExtractedTriplet]:
        """The claims of one text, in its order; empty where none is found."""
        analyser = self._analyser or shared_analyser()
        rules = TripletRules(analyser.lexicon)
        for chunks in analyser.chunks(text):
            rules.sentence(chunks)
        return rules.found

    async def extract_many(self, texts: Sequence[str]) -> list[list[ExtractedTriplet]]:
        """The claims of each text, worked out in a thread so that a server stays responsive."""
        return await asyncio.to_thread(lambda: [self.extract(text) for text in texts])


class RuleKeywordExtractor:
    """Takes object and behaviour keywords out of texts by rule, without any model.

    Args:
        analyser: Another analysis than the shipped one; for comparisons.
    """

    def __init__(self, analyser: Analyser | None = None) -> None:
        self._analyser = analyser

    @property
    def label(self) -> str:
        """``rules-1``: rules and lexicon together."""
        return LABEL

    def extract(self, text: str) -> Keywords:
        """The keywords of one text; empty where none is found."""
        analyser = self._analyser or shared_analyser()
        rules = KeywordRules(analyser.lexicon)
        for chunks in analyser.chunks(text):
            rules.sentence(chunks)
        return Keywords(
            objects=tuple(rules.objects.values()), behaviors=tuple(rules.behaviors.values())
        )

    async def extract_many(self, texts: Sequence[str]) -> list[Keywords]:
        """The keywords of each text, worked out in a thread so that a server stays responsive."""
        return await asyncio.to_thread(lambda: [self.extract(text) for text in texts])
