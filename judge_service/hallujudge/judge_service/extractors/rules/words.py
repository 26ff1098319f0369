"""Words of a text: split into tokens with offsets, and analysed without their context."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct

from .lexicon import Lexicon, Morphology
from .word_lists import ABBREVIATIONS, CLOSED, MULTIWORD, listed

# The line of each word list and number in docs/explanation/rule-extractor-quality.md, "What each
# word list is for", says how many texts have other claims without it.

_LONGEST_SENTENCE = 240
"""The maximum number of tokens of a sentence, which limits the cost of the rules."""

# Invisible characters: zero-width marks, soft hyphens, direction marks, the byte order mark.
_INVISIBLE = re.compile("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff]")
_ALIKE = str.maketrans(
    {"\u2018": "'", "\u2019": "'", "\u02bc": "'", "\u2010": "-", "\u2011": "-", "\u00a0": " "}
)
# Tags of HTML that models write; a text may cite others, such as <think>.
_INLINE = "a|b|big|code|em|font|i|mark|s|small|span|strong|sub|sup|u"
_BLOCK = "blockquote|br|center|div|figcaption|h[1-6]|hr|li|ol|p|pre|table|tbody|td|th|thead|tr|ul"
_TAG = re.compile(rf"</?(?:{_INLINE}|(?P<block>{_BLOCK}))(?:\s[^<>]{{0,200}})?/?>", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:nbsp|amp|quot|apos|lt|gt|#\d{1,5});", re.IGNORECASE)
_TOKEN = re.compile(
    r"\n[ \t]*(?:\n\s*|(?=[-*\u2022]|\d{1,3}[.)]|[A-Z]))"  # paragraph, list item or fresh line
    r"|(?:[A-Za-z]\.){2,}"  # U.S., a.m.
    r"|[^\W\d_]+(?:['-][^\W\d_]+)*"  # words with hyphens and apostrophes
    r"|\d+(?:[.,:/]\d+)*(?:-?[^\W\d_]+)?(?:-[^\W\d_]+)*%?"  # numbers, 20-year-old, 1st
    r"|\.{2,}|[^\w\s]|_+"
)
# Their parts have tags of their own: "isn't" is "is" and a negation.
_CONTRACTIONS = ("n't", "'s", "'re", "'ve", "'ll", "'m", "'d")
_CANNOT = "cannot"
# With the full-width marks of Chinese and Japanese.
_ENDS = frozenset(".!?\u2026\u3002\uff01\uff1f")
_STOPS = _ENDS | {";"}
# Marks that belong to the sentence before them.
_CLOSERS = frozenset("\"'\u201d)]*")
_SILENT = frozenset('*_#`~|"\u201c\u201d\u00ab\u00bb')
"""Marks without meaning for the rules: emphasis, headings and quotation marks."""
_PHRASES: dict[str, dict[str, list[tuple[str, ...]]]] = {}
"""First word -> second word -> the words after the first, longer phrases before shorter ones."""
for _phrase in sorted(MULTIWORD, key=lambda phrase: -len(phrase.split())):
    _head, *_tail = _phrase.split()
    _PHRASES.setdefault(_head, {}).setdefault(_tail[0], []).append(tuple(_tail))


class Token(NamedTuple):
    """A word or punctuation mark and its place."""

    text: str
    """The token as written, with normalised quotes and hyphens."""
    start: int
    """The first character in the original text."""
    end: int
    """One past the last character."""


def without_markup(text: str) -> str:
    """Return the text with spaces in place of tags and entities of HTML, which are not words.

    The places of all other characters stay the same. Tags of blocks end a sentence.
    """
    # Most texts have no tag, and the test is cheaper than the search.
    if "<" in text:
        text = _TAG.sub(_blank, text)
    return _ENTITY.sub(lambda found: " " * len(found[0]), text) if "&" in text else text


def _blank(tag: re.Match[str]) -> str:
    size = len(tag[0])
    # Two breaks make a paragraph, and the length stays the same.
    return "\n\n" + " " * (size - 2) if tag["block"] else " " * size


def clean(text: str) -> tuple[str, list[int] | None]:
    """Return the text without mark-up and invisible characters, and each one's original place.

    The places are None if no character moved.
    """
    text = without_markup(text)
    text = text.translate(_ALIKE) if not text.isascii() else text
    # The usual case, in which no character moves and no list of places is needed.
    if text.isascii() or not _INVISIBLE.search(text):
        return text, None
    kept = [i for i, char in enumerate(text) if not _INVISIBLE.match(char)]
    places = [*kept, len(text)]
    return "".join([text[i] for i in kept]), places


def sentences(text: str) -> Iterator[list[Token]]:
    """Yield the sentences as tokens; a multi-word preposition or adverb is one token."""
    cleaned, places = clean(text)
    sentence: list[Token] = []
    closing = False
    for match in _TOKEN.finditer(cleaned):
        word = match.group()
        first = word[0]
        broken = first == "\n"
        # Quotation marks and brackets after a full stop belong to the sentence before.
        if broken or (closing and word not in _CLOSERS):
            if sentence:
                yield _merged(sentence)
                sentence = []
            closing = False
        if broken or first in _SILENT:
            continue
        start, end = match.span()
        if places is not None:
            # The last character's place plus one, since invisible characters may follow it.
            start, end = places[start], places[end - 1] + 1
        if "'" in word and end - start > 1:
            sentence += _split(word, start, end)
        elif len(word) == len(_CANNOT) and word.lower() == _CANNOT and end - start == len(word):
            sentence += [Token(word[:3], start, start + 3), Token(word[3:], start + 3, end)]
        else:
            sentence.append(Token(word, start, end))
        if first in _STOPS:
            closing = first == ";" or _ends(sentence, cleaned, match.end())
        elif len(sentence) >= _LONGEST_SENTENCE:
            closing = True
    if sentence:
        yield _merged(sentence)


def _ends(sentence: list[Token], text: str, after: int) -> bool:
    """Return whether the last token, a punctuation mark, ends the sentence."""
    if sentence[-1].text != ".":
        return True
    # "3.5" and "example.com" have full stops that end nothing.
    if after < len(text) and not text[after].isspace() and text[after] not in _CLOSERS:
        return False
    if len(sentence) == 1:
        return True
    before = sentence[-2].text
    if len(sentence) == 2 and (before.isdigit() or (len(before) == 1 and before.isalpha())):
        return False  # a list's number
    # An initial: "J. Smith".
    if len(before) == 1 and before.isupper() and before != "I":
        return False
    if before.lower() not in ABBREVIATIONS:
        return True
    following = text[after : after + 40].lstrip()[:1]
    # "Etc." and "no." end a sentence if a capital follows: "no. 5" does not.
    return before.lower() in ("etc", "no") and following.isupper()


def _split(word: str, start: int, end: int) -> list[Token]:
    """Split a contraction: ``isn't`` is ``is`` and ``n't``, ``man's`` is ``man`` and ``'s``."""
    lower = word.lower()
    for ending in _CONTRACTIONS:
        if lower.endswith(ending) and len(word) > len(ending):
            cut = end - len(ending)
            return [Token(word[: -len(ending)], start, cut), Token(word[-len(ending) :], cut, end)]
    return [Token(word, start, end)]


def _merged(tokens: list[Token]) -> list[Token]:
    """Return the tokens with multi-word phrases merged."""
    lowered = [token.text.lower() for token in tokens]
    out: list[Token] = []
    i, last = 0, len(tokens) - 1
    for k, token in enumerate(tokens):
        if k < i:
            continue
        i = k + 1
        # By the first two words, as nearly all words begin no phrase.
        tails = _PHRASES.get(lowered[k])
        if tails is not None and k < last and (found := tails.get(lowered[k + 1])):
            length = _phrase_length(found, lowered, k)
            if length:
                i = k + length + 1
                phrase = " ".join(lowered[k:i])
                token = Token(phrase, token.start, tokens[i - 1].end)
        out.append(token)
    return out


def _phrase_length(tails: list[tuple[str, ...]], lowered: list[str], i: int) -> int:
    """Return how many words of a known phrase follow word ``i``; the longest phrase wins."""
    for tail in tails:
        if tuple(lowered[i + 1 : i + 1 + len(tail)]) == tail:
            return len(tail)
    return 0


NEVER = -99
"""The weight of a part of speech that a word cannot have."""

# Longer strings are not words; they would fill the cache.
_LONGEST_WORD = 64
_MOST_CACHED = 50_000

# Words, mostly of closed classes, whose tag depends on their neighbours.
_CONTEXTUAL = listed(
    "there that her this these those some all both each many several another most either few any "
    "neither much so as like one 's ' likely no can first home "
    "itself himself herself themselves"
)
# Endings of adjectives, for words that WordNet does not have.
_ADJECTIVE_ENDINGS = (
    *("ous", "ful", "less", "able", "ible", "ive", "ish", "like", "esque", "ical"),
    *("style", "colored", "coloured", "sized", "shaped"),
)


class Word(Struct, eq=False):
    """The analysis of a surface form without context."""

    lower: str
    tag: str = ""
    """The tag if context cannot change it, else empty."""
    noun: int = NEVER
    verb: int = NEVER
    adjective: int = NEVER
    adverb: int = NEVER
    noun_lemma: str = ""
    verb_lemma: str = ""
    form: str = ""
    known: bool = True
    """Whether the lexicon has the word, or it is a mark or a number."""
    plural: bool = False
    contextual: bool = False

    def __post_init__(self) -> None:
        self.noun_lemma = self.verb_lemma = self.lower
        self.contextual = self.lower in _CONTEXTUAL

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
                # All at once, which needs no order of use to be kept.
                self._cache.clear()
            found = self._cache[text] = self._analyse(text)
        return found

    def _analyse(self, text: str) -> Word:
        lower = text.lower()
        # Closed classes first: WordNet has "in" as a noun, an adjective and an adverb.
        closed = CLOSED.get(lower) or MULTIWORD.get(lower)
        if closed:
            return self._closed(lower, closed)
        # Before the lexicon, which has words only.
        if not lower[0].isalpha():
            return _marked(lower)
        if len(lower) > _LONGEST_WORD or not _latin(lower):
            return _foreign(lower)
        word = Word(lower)
        self._readings(word)
        if max(word.noun, word.verb, word.adjective, word.adverb) <= NEVER:
            # Compounds that are written with a hyphen are English, though no lexicon has them all.
            word.known = "-" in lower
            self._guess(word, text)
        _only_reading(word)
        return word

    def _closed(self, lower: str, tag: str) -> Word:
        word = Word(lower, tag)
        word.plural = lower in ("they", "we", "you", "them", "us", "i", "both", "all", "who")
        if tag in "BHO":
            word.verb_lemma, _, word.form = self._morphology.verb(lower)
            # "'re" and "'ve" have no lemma in WordNet.
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
            # Low weights, so that the context decides.
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
        # WordNet lacks these verbs, of which many are nouns as well.
        if self._lexicon.is_noun(stem + "e"):
            return stem + "e"
        doubled = len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] not in "aeiousl"
        return stem[:-1] if doubled else stem

    def _guess_hyphened(self, word: Word, lower: str) -> None:
        last = lower.rsplit("-", 1)[1]
        # The last word makes the class: "well-dressed", "two-storey", "T-shirt".
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
        # "Grass", "bus" and "tennis" are not plurals.
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
    # Dashes and brackets part a clause as a comma does.
    return "," if lower in (",", "(", ")", "-", "\u2013", "\u2014") else ":"


def _latin(word: str) -> bool:
    return all(char < "\u0250" or char in "'-" for char in word)


def _foreign(lower: str) -> Word:
    """Return the analysis of a word that is not English."""
    word = Word(lower, "?")
    word.known = False
    return word
