"""Counts that a text states, as claims; the rules of triplets leave numbers out."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .. import ExtractedTriplet, Span
from .rule_extractors import CaptionObject, RuleExtractor, read_caption

# The line of each word list in docs/explanation/rule-extractor-quality.md, "What each word list
# is for", says how many texts have other claims without it.

_NAMES = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven")
_NUMBERS = {name: number for number, name in enumerate((*_NAMES, "twelve"), start=2)}
# "5-year-old", "1/2" and "3.5" are other words, and count nothing.
_WORD = re.compile(r"[^\s,;]+")
_MOST_DIGITS = 3
# Plurals that look like the singular.
_ALIKE = frozenset({"people", "sheep", "deer", "fish", "cattle", "police"})


class RuleCounts(RuleExtractor[list[ExtractedTriplet]]):
    """Extracts how many of a thing a text says there are: (dogs, is, 2).

    Only a numeral before the noun, within its phrase, is a count: "a couple of" and "a pair of"
    are often said of no exact number, and of one thing, such as a pair of glasses.
    """

    @property
    def label(self) -> str:
        """The version of these rules, increased when their results change."""
        return "counts-1"

    def extract(self, text: str) -> list[ExtractedTriplet]:
        """Return a claim for each object with a number, in the text's order."""
        return [
            claim
            for sentence in read_caption(text)
            for found in sentence.objects
            for claim in _claims(text[found.start : found.end], found)
        ]


def _claims(phrase: str, found: CaptionObject) -> Iterator[ExtractedTriplet]:
    """Yield the count of an object, if its phrase has one number before a noun in the plural."""
    length = len(found.name.split())
    words = _WORD.findall(phrase)
    before, noun = [word.lower() for word in words[:-length]], words[-length:]
    numbers = list(filter(None, map(_number, before)))
    # A noun in the singular is part of a compound whose end the tagger took for another word.
    is_plural = noun[-1].lower() != found.head or found.head in _ALIKE
    if len(numbers) != 1 or not is_plural:
        return
    place = Span(found.start, found.end)
    yield ExtractedTriplet(
        subject=" ".join(noun),
        relation="is",
        object=str(numbers[0]),
        start=found.start,
        end=found.end,
        subject_span=place,
        object_span=place,
    )


def _number(word: str) -> int:
    """Return the number that a word states; 0 if it is none, or one."""
    if word.isascii() and word.isdigit() and len(word) <= _MOST_DIGITS:
        return int(word) if int(word) > 1 else 0
    return _NUMBERS.get(word, 0)
