"""The lexicon of WordNet readings, and lemmatisation with it.

A packed file that is loaded on first use.
"""

from __future__ import annotations

import gzip
from functools import lru_cache
from importlib import resources
from typing import NamedTuple

from .word_lists import (
    NEW_VERBS,
    PARTICIPLE_ONLY,
    PAST_ONLY,
    PERSON_WORDS,
    PLURAL_ONLY,
    TANGIBLE_EXTRA,
    UNTANGIBLE,
    paired,
)

# The line of each word list and number in docs/explanation/rule-extractor-quality.md, "What each
# word list is for", says how many texts have other claims without it.

_FILE = "data/lexicon.txt.gz"
# Weights are digits of base 36: "0" to "9" and then "a" to "z"; see tools/build_lexicon.py.
_ZERO, _LETTER = ord("0"), ord("a") - 10
_PERSON_FILE = "s"  # noun.person is lexicographer file 18, "s" counted from "a"


class Reading(NamedTuple):
    """The parts of speech of a lemma; weights are logarithms of counts, and -1 if it has none."""

    noun: int
    """The weight as a noun."""
    verb: int
    """The weight as a verb."""
    adjective: int
    """The weight as an adjective."""
    adverb: int
    """The weight as an adverb."""
    file: str
    """The letter of the lexicographer file of the commonest noun sense; empty: not a noun."""
    tangible: int
    """The share of tangible noun senses, in ninths."""
    visible: bool
    """Whether the adjective describes something that an image shows."""

    @property
    def person(self) -> bool:
        """Whether the noun's commonest sense is a person."""
        return self.file == _PERSON_FILE


# One object for all unknown words, of which a text in another language is full.
_NOTHING = Reading(-1, -1, -1, -1, "", 0, False)


class Lexicon:
    """Lemmas with their readings, and irregular forms.

    Args:
        codes: Lemma -> its code in the data file.
        irregular: "form part-of-speech" -> lemmas, separated by blanks.
    """

    def __init__(self, codes: dict[str, str], irregular: dict[str, str]) -> None:
        self._codes = codes
        self._irregular = irregular

    def reading(self, lemma: str) -> Reading:
        """Return the reading of a lemma; phrases have underscores."""
        code = self._codes.get(lemma)
        return _NOTHING if code is None else _decode(code)

    def is_verb(self, lemma: str) -> bool:
        """Return whether the lemma can be a verb."""
        code = self._codes.get(lemma)
        # A test without decoding, since every particle and compound asks.
        return code is not None and len(code) > 1 and code[1] not in "-:!"

    def is_noun(self, lemma: str) -> bool:
        """Return whether the lemma can be a noun."""
        code = self._codes.get(lemma)
        return code is not None and code[0] != "-"

    def is_person(self, lemma: str) -> bool:
        """Return whether a noun is a person."""
        return lemma in PERSON_WORDS or self.reading(lemma).person

    def irregular(self, form: str, pos: str) -> tuple[str, ...]:
        """Return the lemmas of an irregular form; ``pos`` is n, v, a or r."""
        found = self._irregular.get(f"{form} {pos}")
        return tuple(found.split()) if found else ()


# Texts repeat few lemmas, so that most readings are decoded already.
@lru_cache(maxsize=8192)
def _decode(code: str) -> Reading:
    visible = code.endswith("!")
    digits, _, noun = code.rstrip("!").partition(":")
    # The file leaves out readings at the end that a lemma lacks.
    weights = [_weight(char) for char in digits.ljust(4, "-")]
    return Reading(
        weights[0],
        weights[1],
        weights[2],
        weights[3],
        noun[:1],
        int(noun[1]) if noun else 0,
        visible,
    )


def _weight(char: str) -> int:
    if char == "-":
        return -1
    code = ord(char)
    return code - _ZERO if code < _LETTER else code - _LETTER


# The lexicon is read once in a process, and shared by all extractors.
@lru_cache(maxsize=1)
def load_lexicon() -> Lexicon:
    """Return the shipped lexicon, which the first call loads."""
    packed = resources.files(__package__).joinpath(_FILE).read_bytes()
    _, _, body = gzip.decompress(packed).decode("utf-8").partition("\n")
    entries, _, forms = body.partition("\n\n")
    codes = dict([line.split(" ", 1) for line in entries.split("\n")])
    irregular = {}
    for line in forms.splitlines():
        form, pos, lemmas = line.split(" ", 2)
        irregular[f"{form} {pos}"] = lemmas
    return Lexicon(codes, irregular)


# Detachment rules of nouns in WordNet's morphology (morphy(7WN)), as nltk applies them.
_DETACHED = (
    *(("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z")),
    *(("ches", "ch"), ("shes", "sh"), ("men", "man"), ("ies", "y")),
)
# Nouns that WordNet has as names only, which the lexicon leaves out: without them, "labradors"
# would have no lemma. A test compares the lemmas of all forms of table words with WordNet's files.
_NAMES = frozenset({"labrador", "ramses"})


# Object HalBench's released script takes nltk's lemmas, which its word lists were made for.
@lru_cache(maxsize=1 << 16)
def wordnet_noun_lemma(word: str) -> str:
    """Return the shortest noun lemma that nltk's WordNet lemmatiser finds, or the word itself."""
    lexicon = load_lexicon()

    def known(forms: list[str]) -> list[str]:
        return [form for form in forms if lexicon.is_noun(form) or form in _NAMES]

    if irregular := lexicon.irregular(word, "n"):
        return min(known([word, *irregular]), key=len, default=word)
    forms, lemmas = _detached([word]), known([word, *_detached([word])])
    # nltk detaches again from what it has detached, until it finds a noun.
    while forms and not lemmas:
        forms = _detached(forms)
        lemmas = known(forms)
    return min(lemmas, key=len, default=word)


def _detached(forms: list[str]) -> list[str]:
    return [
        form.removesuffix(ending) + start
        for form in forms
        for ending, start in _DETACHED
        if form.endswith(ending)
    ]


# The weight of verbs that WordNet 3.0 lacks, and has no counts for.
_NEW_VERB_WEIGHT = 10
VOWELS = frozenset("aeiou")

# Plurals that WordNet's lists lack, or for which a rarer lemma would win.
_NOUN_OVERRIDES = paired(
    "people:person women:woman dice:die selfies:selfie axes:axe bases:base does:doe stairs:stair "
    "series:series"
)


class Morphology:
    """Lemmatises by irregular forms and suffix rules; of several lemmas, the commonest wins.

    Args:
        lexicon: What is known of lemmas.
    """

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon

    def noun(self, word: str) -> tuple[str, int, bool]:
        """Return the lemma of a noun, its weight (-1: unknown) and whether the form is plural."""
        if word in _NOUN_OVERRIDES:
            lemma = _NOUN_OVERRIDES[word]
            # An override is a noun even where WordNet lacks its lemma, such as "selfie".
            return lemma, max(self._noun_weight(lemma), 1), lemma != word or word == "series"
        own = self._noun_weight(word)
        if word in PLURAL_ONLY:
            return word, max(own, 1), True
        best, weight = word, own
        for lemma in (*self._lexicon.irregular(word, "n"), *_singulars(word)):
            found = self._noun_weight(lemma)
            # With equal counts, a form in -s is taken for the plural.
            if found > weight or (found == own and weight == own):
                best, weight = lemma, found
        return best, weight, best != word

    def verb(self, word: str) -> tuple[str, int, str]:
        """Return the lemma, the weight and the form of a verb.

        Forms are b base, s third person, g -ing, d past or participle, p past only, e participle
        only.
        """
        best, weight, form = word, self._verb_weight(word), "b"
        irregular = self._lexicon.irregular(word, "v")
        for lemma in irregular:
            found = self._verb_weight(lemma)
            if lemma != word and found >= weight:
                best, weight, form = lemma, found, _irregular_form(word)
        if best == word:
            for lemma, suffix in _verb_stems(word):
                found = self._verb_weight(lemma)
                if found > weight:
                    best, weight, form = lemma, found, suffix
        return best, weight, form

    def comparative(self, word: str) -> int:
        """Return the weight of the adjective of a comparative or superlative; -1 if unknown."""
        stems = list(self._lexicon.irregular(word, "a"))
        if word.endswith("er"):
            stems += _graded(word[:-2])
        elif word.endswith("est"):
            stems += _graded(word[:-3])
        weight = max((self._lexicon.reading(stem).adjective for stem in stems), default=-1)
        named = self._noun_weight(word)  # "dryer" is a noun as well as a comparative
        return weight if named < 0 else min(weight, named + 2)

    def tangible(self, lemma: str) -> bool:
        """Return whether a noun is tangible; unknown nouns are."""
        if lemma in UNTANGIBLE:
            return False
        if lemma in TANGIBLE_EXTRA:
            return True
        reading = self._lexicon.reading(lemma)
        # Otherwise a hallucinated thing that WordNet lacks would never be claimed.
        if reading.noun < 0:
            return True
        # A third of the senses, in ninths: not more of "crossing" are tangible.
        return reading.tangible >= 3

    def _noun_weight(self, lemma: str) -> int:
        return self._lexicon.reading(lemma).noun

    def _verb_weight(self, lemma: str) -> int:
        weight = self._lexicon.reading(lemma).verb
        return _NEW_VERB_WEIGHT if weight < 0 and lemma in NEW_VERBS else weight


def _singulars(word: str) -> list[str]:
    # "Is", "as" and "glass" end with s and are not plurals.
    if len(word) < 3 or not word.endswith("s") or word.endswith("ss"):
        return []
    stems = [word[:-1]]
    if word.endswith("es"):
        stems.append(word[:-2])
    if word.endswith("ies") and len(word) > 4:
        stems.append(word[:-3] + "y")
    if word.endswith("ves"):
        stems += [word[:-3] + "f", word[:-3] + "fe"]
    return stems


def _verb_stems(word: str) -> list[tuple[str, str]]:
    if word.endswith("ing") and len(word) > 4:
        return [(stem, "g") for stem in _stripped(word[:-3])]
    if word.endswith("ied"):
        return [(word[:-3] + "y", "d"), (word[:-1], "d")]
    if word.endswith("ed") and len(word) > 3:
        return [(stem, "d") for stem in _stripped(word[:-2])]
    if word.endswith("ies"):
        return [(word[:-3] + "y", "s"), (word[:-1], "s")]
    if word.endswith("s") and not word.endswith("ss"):
        stems = [(word[:-1], "s")]
        return [*stems, (word[:-2], "s")] if word.endswith("es") else stems
    return []


def _stripped(stem: str) -> list[str]:
    stems = [stem, stem + "e"]
    # "Running" doubles its consonant; vowels are doubled for their sound: "seeing".
    if len(stem) > 2 and stem[-1] == stem[-2] and stem[-1] not in VOWELS:
        stems.append(stem[:-1])
    # "Panicking" and "picnicking" add a k.
    if stem.endswith("ck"):
        stems.append(stem[:-1])
    return stems


def _graded(stem: str) -> list[str]:
    stems = [*_stripped(stem)]
    if stem.endswith("i"):
        stems.append(stem[:-1] + "y")
    return stems


def _irregular_form(word: str) -> str:
    if word.endswith("ing"):
        return "g"
    if word in PAST_ONLY:
        return "p"
    if word in PARTICIPLE_ONLY:
        return "e"
    return "s" if word.endswith("s") and not word.endswith("ss") else "d"
