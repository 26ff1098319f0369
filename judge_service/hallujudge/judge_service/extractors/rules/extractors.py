"""The rule-based extractors of triplets, keywords and nouns."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ..values import ExtractedTriplet, Keywords
from .analysis import Analyser, shared_analyser
from .keywords import KeywordRules
from .triplets import TripletRules

__all__ = ["LABEL", "RuleKeywordExtractor", "RuleNounExtractor", "RuleTripletExtractor"]

LABEL = "rules-1"
"""The version of the rules and the lexicon, increased when their results change."""


class RuleTripletExtractor:
    """Extracts (subject, relation, object) claims from texts by rules, without a model.

    Args:
        analyser: The analyser; None: the shipped one.
    """

    def __init__(self, analyser: Analyser | None = None) -> None:
        self._analyser = analyser

    @property
    def label(self) -> str:
        """``rules-1``: rules and lexicon together."""
        return LABEL

    def extract(self, text: str) -> list[ExtractedTriplet]:
        """Return the claims of one text, in its order."""
        analyser = self._analyser or shared_analyser()
        rules = TripletRules(analyser.lexicon)
        for chunks in analyser.chunks(text):
            rules.sentence(chunks)
        return rules.found

    async def extract_many(self, texts: Sequence[str]) -> list[list[ExtractedTriplet]]:
        """Return the claims of each text, extracted in a thread to keep a server responsive."""
        return await asyncio.to_thread(lambda: [self.extract(text) for text in texts])


class RuleKeywordExtractor:
    """Extracts object and behaviour keywords from texts by rules, without a model.

    Args:
        analyser: The analyser; None: the shipped one.
    """

    def __init__(self, analyser: Analyser | None = None) -> None:
        self._analyser = analyser

    @property
    def label(self) -> str:
        """``rules-1``: rules and lexicon together."""
        return LABEL

    def extract(self, text: str) -> Keywords:
        """Return the keywords of one text."""
        analyser = self._analyser or shared_analyser()
        rules = KeywordRules(analyser.lexicon)
        for chunks in analyser.chunks(text):
            rules.sentence(chunks)
        return Keywords(
            objects=tuple(rules.objects.values()), behaviors=tuple(rules.behaviors.values())
        )

    async def extract_many(self, texts: Sequence[str]) -> list[Keywords]:
        """Return the keywords of each text, extracted in a thread to keep a server responsive."""
        return await asyncio.to_thread(lambda: [self.extract(text) for text in texts])


class RuleNounExtractor:
    """Extracts the nouns of texts by rules, without a model: single words in the singular.

    Args:
        analyser: The analyser; None: the shipped one.
    """

    def __init__(self, analyser: Analyser | None = None) -> None:
        self._analyser = analyser

    @property
    def label(self) -> str:
        """``rules-1``: rules and lexicon together."""
        return LABEL

    def extract(self, text: str) -> tuple[str, ...]:
        """Return the nouns of one text in its order, repeats included."""
        return tuple((self._analyser or shared_analyser()).nouns(text))
