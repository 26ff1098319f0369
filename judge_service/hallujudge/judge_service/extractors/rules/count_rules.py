"""Counts that a text states, as claims; the rules of triplets leave numbers out."""

from __future__ import annotations

from .. import ExtractedTriplet, Span
from .rule_extractors import CaptionObject, RuleExtractor, read_caption


class RuleCounts(RuleExtractor[list[ExtractedTriplet]]):
    """Extracts how many of a thing a text says there are: (dogs, is, 2)."""

    @property
    def label(self) -> str:
        """The version of these rules, increased when their results change."""
        return "counts-1"

    def extract(self, text: str) -> list[ExtractedTriplet]:
        """Return a claim for each object with a number, in the text's order."""
        return [
            _claim(text[found.start : found.end], found)
            for sentence in read_caption(text)
            for found in sentence.objects
            if found.number
        ]


def _claim(phrase: str, found: CaptionObject) -> ExtractedTriplet:
    # The noun as the phrase has it, with the noun before it in a compound.
    words = phrase.split()[-len(found.name.split()) :]
    place = Span(found.start, found.end)
    return ExtractedTriplet(
        subject=" ".join(words) or found.name,
        relation="is",
        object=str(found.number),
        start=found.start,
        end=found.end,
        subject_span=place,
        object_span=place,
    )
