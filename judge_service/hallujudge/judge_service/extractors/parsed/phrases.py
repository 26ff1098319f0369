"""Noun phrases and relations of a parsed sentence, as the rules' claims need them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..rules.lexicon import Lexicon
from ..rules.morph import Morphology
from ..rules.phrases import NounPhrase
from ..rules.words import MEASURE_NOUNS, listed

if TYPE_CHECKING:
    from spacy.tokens import Token

__all__ = ["Phrases", "end_of", "is_noun", "is_side", "placed", "prepositions", "together"]

# Nouns that form a preposition with those around them: "in front of", "on the left side of".
_SIDES = listed(
    "front top middle side left right back edge bottom center centre end corner inside outside "
    "foot midst"
)
_MOST_TOGETHER = 30
"""Longer lists are cut: each subject is related to each object."""
_DENYING = listed("no neither nor not")
_NAMELESS = listed(
    "other same own different several many few more most such last next first second third "
    "various multiple numerous whole entire additional single"
)


def end_of(token: Token) -> int:
    """Return the position after a token."""
    return int(token.idx + len(token.text))


def is_noun(token: Token) -> bool:
    """Return whether a token can be the subject or object of a claim."""
    return token.pos_ in ("NOUN", "PROPN", "PRON") and token.dep_ != "compound"


def is_side(token: Token) -> bool:
    """Return whether a noun belongs to a preposition: "front" in "in front of"."""
    return token.dep_ == "pobj" and token.lemma_.lower() in _SIDES


def together(token: Token) -> Iterator[Token]:
    """Yield a token and those coordinated with it, at most thirty: "a cup and a fork"."""
    yield token
    if not any(child.dep_ == "conj" for child in token.children):
        return
    for other in token.conjuncts[:_MOST_TOGETHER]:
        if other.i > token.i and (other.pos_ == token.pos_ or (is_noun(other) and is_noun(token))):
            yield other


def placed(prep: Token) -> tuple[str, Token | None]:
    """Return the text of a preposition and its object: "in front of" and the noun after it."""
    text = prep.text.lower()
    if prep.head.i == prep.i - 1 and prep.head.dep_ == "advmod":
        text = f"{prep.head.text.lower()} {text}"
    target = next((child for child in prep.children if child.dep_ in ("pobj", "obj")), None)
    if target is None:
        inner = next((child for child in prep.children if child.dep_ == "prep"), None)
        if inner is None or inner.i != prep.i + 1:
            return text, None
        return f"{text} {inner.text.lower()}", placed(inner)[1] if inner.i > prep.i else None
    if target.lemma_.lower() in _SIDES:
        for child in target.children:
            if child.dep_ == "prep" and child.text.lower() in ("of", "to") and child.i > target.i:
                words = " ".join(t.text.lower() for t in prep.doc[prep.i + 1 : child.i + 1])
                _, found = placed(child)
                return f"{text} {words}", found
    return text, target


def prepositions(child: Token) -> Iterator[Token]:
    """Yield the preposition that a dependent is, or that it has: "to" of "next to"."""
    if child.pos_ in ("ADP", "SCONJ") and child.dep_ in ("prep", "agent", "dative"):
        yield child
    elif child.dep_ == "advmod":
        for inner in child.children:
            if inner.dep_ == "prep" and inner.i == child.i + 1:
                yield inner


class Phrases:
    """The noun phrases of a document.

    Args:
        lexicon: The lexicon, which has the visible adjectives.
        morphology: Knows the tangible nouns.
    """

    def __init__(self, lexicon: Lexicon, morphology: Morphology) -> None:
        self._lexicon = lexicon
        self._morphology = morphology
        self._known: dict[int, NounPhrase] = {}

    def of(self, token: Token) -> NounPhrase:
        """Return the phrase whose head is a noun; of "a group of people" it is that of people."""
        target = self._measured(token)
        found = self._known.get(target.i)
        if found is None:
            found = self._known[target.i] = self._build(target)
        return found

    @staticmethod
    def _measured(token: Token) -> Token:
        for _ in range(2):
            if token.lemma_.lower() not in MEASURE_NOUNS:
                break
            of = next((c for c in token.children if c.dep_ == "prep" and c.text == "of"), None)
            target = None if of is None else placed(of)[1]
            if target is None:
                break
            token = target
        return token

    def _build(self, token: Token) -> NounPhrase:
        phrase = NounPhrase("", token.i, token.i + 1, token.idx, end_of(token))
        phrase.lemma = token.lemma_.lower()
        phrase.pronoun = token.pos_ == "PRON"
        phrase.plural = token.tag_ in ("NNS", "NNPS") or phrase.lemma in ("they", "we", "these")
        phrase.tangible = token.pos_ == "NOUN" and self._morphology.tangible(phrase.lemma)
        first = token.i
        for child in token.lefts:
            if child.dep_ == "compound" or (child.dep_ == "amod" and self._in_name(child)):
                first = min(first, child.i)
            elif child.dep_ in ("preconj", "neg"):
                phrase.negated = phrase.negated or child.text.lower() in _DENYING
            elif child.dep_ in ("det", "poss"):
                phrase.determiner = child.text.lower()
                phrase.negated = phrase.negated or phrase.determiner in _DENYING
                phrase.start = min(phrase.start, child.idx)
        words = [each for each in token.doc[first : token.i + 1] if _named(each, token)]
        phrase.name_start = words[0].idx
        phrase.text = token.text.lower() if phrase.pronoun else " ".join(map(_written, words))
        beside = token.head.children if token.dep_ == "conj" else ()
        nor = any(each.dep_ == "cc" and each.text.lower() == "nor" for each in beside)
        phrase.negated = phrase.negated or nor
        phrase.attributes = list(self._attributes(token))
        return phrase

    def _in_name(self, adjective: Token) -> bool:
        """Return whether an adjective sorts the noun, as in "public transport"."""
        reading = self._lexicon.reading(adjective.text.lower())
        return adjective.pos_ == "ADJ" and not reading.visible and reading.adjective >= 0

    def _attributes(self, token: Token) -> Iterator[tuple[str, int, int]]:
        for child in token.lefts:
            if child.dep_ != "amod" or self._in_name(child):
                continue
            for each in together(child):
                if each.text.lower() not in _NAMELESS:
                    yield each.text.lower(), each.idx, end_of(each)


def _named(word: Token, head: Token) -> bool:
    """Return whether a word between the first and the last word of a name belongs to it."""
    return word.i == head.i or (word.dep_ in ("compound", "amod", "punct") and word.text != ",")


def _written(token: Token) -> str:
    """Return the word as written, except for the capital letter of a sentence."""
    starts = token.i == token.sent.start and token.pos_ != "PROPN"
    return str(token.text.lower() if starts else token.text)
