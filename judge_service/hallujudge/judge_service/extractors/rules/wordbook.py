"""Analysis of surface forms without context: parts of speech, lemmas and inflection."""

from __future__ import annotations

from .lexicon import Lexicon, Morphology
from .word_lists import CLOSED, MULTIWORD, listed

NEVER = -99
"""The weight of a part of speech that a word cannot have."""

# Longer strings are not words; they would fill the cache.
_LONGEST_WORD = 64
_MOST_CACHED = 50_000

# Words, mostly of closed classes, whose tag depends on their neighbours.
_CONTEXTUAL = listed(
    "there that her this these those some all both each many several another most either few any "
    "neither much so like one 's ' likely no can first home "
    "itself himself herself themselves"
)
# Endings of adjectives, for words that WordNet does not have.
_ADJECTIVE_ENDINGS = (
    *("ous", "ful", "less", "able", "ible", "ive", "ish", "like", "esque", "ical"),
    *("style", "colored", "coloured", "sized", "shaped"),
)


class Word:
    """The analysis of a surface form without context."""

    __slots__ = (
        "adjective",
        "adverb",
        "contextual",
        "form",
        "known",
        "lower",
        "noun",
        "noun_lemma",
        "plural",
        "tag",
        "verb",
        "verb_lemma",
    )

    def __init__(self, lower: str, tag: str = "") -> None:
        self.lower = lower
        self.contextual = lower in _CONTEXTUAL
        self.tag = tag
        """The tag if context cannot change it, else empty."""
        self.noun = self.verb = self.adjective = self.adverb = NEVER
        self.noun_lemma = self.verb_lemma = lower
        self.form = ""
        self.known = True
        """Whether the lexicon has the word, or it is a mark or a number."""
        self.plural = False

    @property
    def nominal(self) -> bool:
        """Whether it may follow a determiner in a noun phrase."""
        return self.tag in ("N", "A", "J") or self.noun > NEVER or self.adjective > NEVER


class WordBook:
    """Analyses surface forms, with a cache.

    Args:
        lexicon: What is known of lemmas.
        morphology: What forms come from which lemma.
    """

    def __init__(self, lexicon: Lexicon, morphology: Morphology) -> None:
        self._lexicon = lexicon
        self._morphology = morphology
        self._cache: dict[str, Word] = {}

    def word(self, text: str) -> Word:
        """Return the analysis of a surface form."""
        found = self._cache.get(text)
        if found is None:
            if len(self._cache) >= _MOST_CACHED:
                self._cache.clear()
            found = self._cache[text] = self._analyse(text)
        return found

    def _analyse(self, text: str) -> Word:
        lower = text.lower()
        closed = CLOSED.get(lower) or MULTIWORD.get(lower)
        if closed:
            return self._closed(lower, closed)
        if not lower[0].isalpha():
            return _marked(lower)
        if len(lower) > _LONGEST_WORD or not _latin(lower):
            return _foreign(lower)
        word = Word(lower)
        self._readings(word)
        if max(word.noun, word.verb, word.adjective, word.adverb) <= NEVER:
            word.known = "-" in lower
            self._guess(word, text)
        _only_reading(word)
        return word

    def _closed(self, lower: str, tag: str) -> Word:
        word = Word(lower, tag)
        word.plural = lower in ("they", "we", "you", "them", "us", "i", "both", "all", "who")
        if tag in "BHO":
            word.verb_lemma, _, word.form = self._morphology.verb(lower)
            word.verb_lemma = {"B": "be", "H": "have", "O": "do"}[tag]
        return word

    def _readings(self, word: Word) -> None:
        lower = word.lower
        lemma, weight, plural = self._morphology.noun(lower)
        if weight >= 0:
            word.noun, word.noun_lemma, word.plural = weight, lemma, plural
        lemma, weight, form = self._morphology.verb(lower)
        if weight >= 0:
            word.verb, word.verb_lemma, word.form = weight, lemma, form
        reading = self._lexicon.reading(lower)
        if reading.adjective >= 0:
            word.adjective = reading.adjective
        elif (weight := self._morphology.comparative(lower)) >= 0:
            word.adjective = weight
        if reading.adverb >= 0:
            word.adverb = reading.adverb

    def _guess(self, word: Word, text: str) -> None:
        """Set the readings of a word that the lexicon does not have, by its ending."""
        lower = word.lower
        if "-" in lower:
            self._guess_hyphened(word, lower)
        elif lower.endswith("ly"):
            word.adverb = 8
        elif lower.endswith("ing") and len(lower) > 5:
            word.verb, word.form, word.noun = 8, "g", 4
            word.verb_lemma = self._stem(lower[:-3])
        elif lower.endswith("ed") and len(lower) > 4:
            word.verb, word.form, word.adjective = 8, "d", 4
            word.verb_lemma = self._stem(lower[:-2])
        elif lower.endswith(_ADJECTIVE_ENDINGS) and text[0].islower():
            word.adjective = 8
        else:
            self._guess_noun(word, lower)

    def _stem(self, stem: str) -> str:
        """Return the most likely verb of a stem: "showcase" for "showcas"."""
        if self._lexicon.is_noun(stem + "e"):
            return stem + "e"
        doubled = len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] not in "aeiousl"
        return stem[:-1] if doubled else stem

    def _guess_hyphened(self, word: Word, lower: str) -> None:
        last = lower.rsplit("-", 1)[1]
        tail = self.word(last) if last else word
        if tail.form in ("g", "d", "e") or tail.adjective >= max(tail.noun, 0):
            word.tag = "A"
        elif tail.noun > NEVER:
            word.noun, word.plural = tail.noun, tail.plural
            word.noun_lemma = f"{lower[: -len(last)]}{tail.noun_lemma}"
            word.adjective = tail.noun - 4
        else:
            word.adjective, word.noun = 6, 6

    @staticmethod
    def _guess_noun(word: Word, lower: str) -> None:
        word.noun = 8
        if lower.endswith("s") and len(lower) > 3 and not lower.endswith(("ss", "us", "is")):
            word.noun_lemma, word.plural = lower[:-1], True


def _only_reading(word: Word) -> None:
    """Set the tag of a word with one reading, and drop improbable readings."""
    if word.tag:
        return
    best = max(word.noun, word.verb, word.adjective, word.adverb)
    # Thresholds in units of the lexicon's logarithmic counts, tuned by hand.
    if word.noun < best - 20:
        word.noun = NEVER
    if word.adjective < best - 16:
        word.adjective = NEVER
    if word.adverb < best - 14:
        word.adverb = NEVER
    if word.verb < best - 24 or (word.verb <= 4 and best >= 8):
        word.verb, word.form = NEVER, ""
    if word.verb > NEVER:
        return
    left = [
        tag
        for tag, weight in (("N", word.noun), ("A", word.adjective), ("R", word.adverb))
        if weight > NEVER
    ]
    if len(left) == 1:
        word.tag = left[0]


def _marked(lower: str) -> Word:
    """Return the analysis of a number, a mark or "'s" (a possessive ending or "is")."""
    word = Word(lower, _mark(lower))
    if lower == "'s":
        word.verb_lemma = "be"
    return word


def _mark(lower: str) -> str:
    if lower[0].isdigit():
        return "A" if "-" in lower else "J"
    if lower in ("'s", "'"):
        return "Z"
    if lower in (".", "!", "?", "...", "…"):
        return "."
    return "," if lower in (",", "(", ")", "-", "\u2013", "\u2014") else ":"


def _latin(word: str) -> bool:
    return all(char < "\u0250" or char in "'-" for char in word)


def _foreign(lower: str) -> Word:
    """Return the analysis of a word that is not English."""
    word = Word(lower, "?")
    word.known = False
    return word
