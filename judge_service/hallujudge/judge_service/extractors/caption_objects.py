"""The objects of captions by rules: any noun, with the words that tell something about it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from .rules.phrases import Chunk, NounPhrase, without_measures
from .rules.rule_extractors import shared_analyser
from .rules.word_lists import MEDIUM_NOUNS, listed
from .rules.words import Token

LABEL = "objects-2"
"""The version of the rules, increased when their results change."""

# Nouns of places in the image and of kinds, which name nothing that it shows.
_VAGUE = MEDIUM_NOUNS | listed(
    "view top side front back part middle center end kind sort type way direction background "
    "foreground distance lot number variety"
)
_NUMBERS = {
    **{"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9},
    **{"ten": 10, "couple": 2, "pair": 2, "both": 2},
}
_LONGEST_NUMBER = 3
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")


class CaptionObject(NamedTuple):
    """An object that a text names."""

    name: str
    """The noun in the singular, after the noun that forms a compound with it."""
    head: str
    """The noun alone."""
    person: bool
    """Whether WordNet's commonest sense of the noun is a person."""
    start: int
    """Position of the phrase's first character in the text."""
    end: int
    """Position after its last character."""
    number: int
    """How many the words about it say there are; 0 if they do not, or one."""
    words: tuple[tuple[int, int], ...]
    """Places of the words about the object: its phrase, and what leads to it, such as its verb."""


class CaptionSentence(NamedTuple):
    """A sentence, and the objects that it names."""

    text: str
    """The sentence."""
    start: int
    """Where it begins in the text."""
    objects: tuple[CaptionObject, ...]
    """Its objects, in its order."""

    def without(self, place: tuple[int, int]) -> str:
        """Return the sentence without a word."""
        start, end = (at - self.start for at in place)
        return self.text[:start] + self.text[end:]


def read_caption(text: str) -> list[CaptionSentence]:
    """Return the English sentences of a text with their objects."""
    return [
        _sentence(text, tokens, without_measures(chunks))
        for tokens, chunks in shared_analyser().read(text)
        if tokens
    ]


def numbers_of(text: str) -> set[int]:
    """Return the numbers of things that a text states."""
    return {number for word in _WORD.findall(text) if (number := _number(word))}


def _sentence(text: str, tokens: Sequence[Token], chunks: Sequence[Chunk]) -> CaptionSentence:
    start, end = tokens[0].start, tokens[-1].end
    phrases = [chunk for chunk in chunks if isinstance(chunk, NounPhrase) and _is_object(chunk)]
    places: dict[int, list[tuple[int, int]]] = {}
    for match in _WORD.finditer(text, start, end):
        places.setdefault(_owner(phrases, match.start()), []).append(match.span())
    objects = tuple(
        _object(text, phrase, places.get(index, ())) for index, phrase in enumerate(phrases)
    )
    return CaptionSentence(text[start:end], start, objects)


def _is_object(phrase: NounPhrase) -> bool:
    # What a caption says is absent is not claimed.
    return not (phrase.pronoun or phrase.negated or phrase.lemma in _VAGUE)


def _owner(phrases: Sequence[NounPhrase], place: int) -> int:
    """Return the phrase that a word is part of, or leads to; the last one at the end."""
    ends = (index for index, phrase in enumerate(phrases) if place < phrase.end)
    return next(ends, len(phrases) - 1)


def _object(text: str, phrase: NounPhrase, words: Sequence[tuple[int, int]]) -> CaptionObject:
    return CaptionObject(
        name=f"{phrase.modifier} {phrase.lemma}" if phrase.modifier else phrase.lemma,
        head=phrase.lemma,
        person=shared_analyser().lexicon.reading(phrase.lemma).person,
        start=phrase.start,
        end=phrase.end,
        number=max((_number(text[start:end]) for start, end in words), default=0),
        words=tuple(words),
    )


def _number(word: str) -> int:
    if word.isascii() and word.isdigit() and len(word) <= _LONGEST_NUMBER:
        return int(word) if int(word) > 1 else 0
    return _NUMBERS.get(word.lower(), 0)
