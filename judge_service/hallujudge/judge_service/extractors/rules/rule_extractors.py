"""The rule-based extractors of triplets, keywords, nouns, objects and counts.

They need no download and no model: a tokenizer, a tagger and pattern rules over a packed WordNet
lexicon, which is read on first use.

"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import Generic, NamedTuple, TypeVar

from ...threads import RULES_EFFORT, map_cpu, of_each
from .. import ExtractedTriplet, Keyword, Keywords, Span
from .chunks import Chunker
from .lexicon import Lexicon, Morphology, load_lexicon
from .modality import mark_absent, without_quoted
from .phrases import Chunk, NounPhrase, VerbGroup, without_measures
from .tagger import Tagger
from .triplet_rules import TripletRules
from .word_lists import (
    EVENTIVE_KEEP,
    LIGHT_VERBS,
    MEDIUM_NOUNS,
    PRESENTING_VERBS,
    STATE_VERBS,
    listed,
)
from .words import Token, Word, WordBook, sentences

# The line of each word list and number in docs/explanation/rule-extractor-quality.md, "What each
# word list is for", says how many texts have other claims without it.

LABEL = "rules-3"
"""The version of the rules and the lexicon, increased when their results change."""

_FEW = 4
"""Shorter sentences are always analysed: unknown words may be names, not another language."""

# Words that some annotators write and others omit.
_UNSAID = listed("a an the is are was were be being of his her its their")
# Without underscores, which models write for emphasis and blanks.
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
# Whose seeing is not a behaviour in the scene: "they see a dog" is said of the viewers.
_VIEWERS = listed("we you i one they viewer observer")
_FoundT = TypeVar("_FoundT")


class RuleExtractor(ABC, Generic[_FoundT]):
    """What the extractors share.

    Args:
        analyser: The analyser; by default the shipped one.
    """

    def __init__(self, analyser: Analyser | None = None) -> None:
        self._analyser = analyser

    @property
    def label(self) -> str:
        """``rules-3``: rules and lexicon together."""
        return LABEL

    @abstractmethod
    def extract(self, text: str) -> _FoundT:
        """Return what is found in one text."""

    async def extract_many(self, texts: Sequence[str]) -> list[_FoundT]:
        """Return what is found in each text, while a server serves other calls."""
        return await map_cpu(
            of_each(self.extract), texts, chars=lambda text: RULES_EFFORT * len(text)
        )

    def analyser(self) -> Analyser:
        """Return the analyser; the shipped one is loaded on first use."""
        return self._analyser or shared_analyser()


class RuleTripletExtractor(RuleExtractor[list[ExtractedTriplet]]):
    """Extracts (subject, relation, object) claims from texts by rules, without a model."""

    def extract(self, text: str, question: str = "") -> list[ExtractedTriplet]:
        """Return the claims of one text, in its order.

        Args:
            text: The text.
            question: The question that it answers, to whose nouns pronouns may refer.
        """
        analyser = self.analyser()
        rules = TripletRules(analyser.lexicon)
        # First: "it" in the answer may be what the question names.
        for chunks in analyser.chunks(question):
            rules.mention(chunks)
        for chunks in analyser.chunks(text):
            rules.sentence(chunks)
        return rules.found

    async def extract_many(
        self, texts: Sequence[str], questions: Sequence[str] = ()
    ) -> list[list[ExtractedTriplet]]:
        """Return the claims of each text, while a server serves other calls.

        Args:
            texts: The texts.
            questions: The question that each text answers; empty if there are none.
        """
        # Most metrics have no questions for their texts.
        pairs = list(zip_longest(texts, questions, fillvalue=""))
        return await map_cpu(
            of_each(lambda pair: self.extract(*pair)),
            pairs,
            chars=lambda pair: RULES_EFFORT * len(pair[0]),
        )


class RuleKeywordExtractor(RuleExtractor[Keywords]):
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


class RuleNounExtractor(RuleExtractor[tuple[str, ...]]):
    """Extracts the nouns of texts by rules, without a model: single words in the singular."""

    def extract(self, text: str) -> tuple[str, ...]:
        """Return the nouns of one text in its order, repeats included."""
        return tuple(self.analyser().nouns(text))


class KeywordRules:
    """Collects the objects and behaviours of a text, sentence by sentence.

    Args:
        lexicon: The lexicon, which has the nouns that are also verbs.
    """

    def __init__(self, lexicon: Lexicon) -> None:
        self.objects: dict[str, Keyword] = {}
        self.behaviors: dict[str, Keyword] = {}
        self._lexicon = lexicon

    def sentence(self, chunks: list[Chunk]) -> None:
        """Process one sentence."""
        # The noun of "takes a walk" is in the behaviour, and no object.
        swallowed: set[int] = set()
        subject: NounPhrase | None = None
        existential = False
        chunks = without_measures(chunks)
        for i, chunk in enumerate(chunks):
            if chunk.kind == "X":
                existential = True
            elif isinstance(chunk, NounPhrase):
                if id(chunk) not in swallowed:
                    self._object(chunk)
                if not (i and chunks[i - 1].kind == "I"):
                    # The noun after a preposition is not who acts.
                    subject = chunk
            elif isinstance(chunk, VerbGroup):
                following = _carrier(chunks, i + 1)
                if existential and chunk.lemma == "be":
                    # "There is" is not a behaviour.
                    existential = False
                    continue
                if self._behavior(chunk, subject, following) and following is not None:
                    swallowed.add(id(following))

    def _object(self, phrase: NounPhrase) -> None:
        if phrase.possessor is not None:
            self._object(phrase.possessor)
        if phrase.pronoun or not phrase.tangible or phrase.lemma in MEDIUM_NOUNS:
            return
        # At most two words, as Mementos' keywords are.
        text = f"{phrase.modifier} {phrase.lemma}" if phrase.modifier else phrase.lemma
        # The first place counts; keywords are without repeats.
        if text not in self.objects:
            self.objects[text] = Keyword(text=text, start=phrase.name_start, end=phrase.end)

    def _behavior(
        self, verb: VerbGroup, subject: NounPhrase | None, following: Chunk | None
    ) -> bool:
        """Add a behaviour; return whether it includes the noun after a light verb."""
        lemma, light = verb.lemma, False
        if verb.lemma in LIGHT_VERBS and isinstance(following, NounPhrase):
            carried = self._carried(verb.lemma, following)
            if carried:
                lemma, light = carried, True
        if not light and (lemma in STATE_VERBS or self._presents(verb, subject)):
            return False
        text = f"{lemma} {verb.particle}" if verb.particle and not light else lemma
        end = following.end if light and following is not None else verb.end
        if text not in self.behaviors:
            self.behaviors[text] = Keyword(text=text, start=verb.verb_start, end=end)
        return light

    def _carried(self, lemma: str, noun: NounPhrase) -> str:
        """Return the behaviour of a light verb and its noun ("take a walk"); empty if none."""
        if noun.pronoun or noun.modifier:
            return ""
        # WordNet has some of them as one verb: "take place".
        if self._lexicon.is_verb(f"{lemma}_{noun.lemma}"):
            return f"{lemma} {noun.lemma}"
        if noun.lemma in ("picture", "photo", "photograph", "selfie"):
            return f"{lemma} {noun.lemma}"
        reading = self._lexicon.reading(noun.lemma)
        # "Takes a cup" takes a thing, although "cup" is a verb as well.
        if noun.lemma in EVENTIVE_KEEP or (noun.tangible and reading.file != "e"):
            return ""
        if reading.verb >= 0:
            return noun.lemma
        # Noun.act, of a noun that is not a verb itself: "do homework".
        return f"{lemma} {noun.lemma}" if reading.file == "e" and lemma != "make" else ""

    @staticmethod
    def _presents(verb: VerbGroup, subject: NounPhrase | None) -> bool:
        if verb.lemma not in PRESENTING_VERBS:
            return False
        # "Is seen" is said by the viewer; "is started" is done in the scene.
        if verb.passive and verb.form == "finite":
            return verb.lemma in ("see", "show", "depict", "capture", "display", "feature")
        if subject is None:
            return False
        return subject.lemma in MEDIUM_NOUNS or subject.text in _VIEWERS


def _carrier(chunks: list[Chunk], i: int) -> Chunk | None:
    """Return the chunk after a verb, skipping an indirect object: "gives her a hug"."""
    if i >= len(chunks):
        return None
    chunk = chunks[i]
    # "Gives her a hug": the hug carries the verb.
    if isinstance(chunk, NounPhrase) and chunk.pronoun and i + 1 < len(chunks):
        following = chunks[i + 1]
        return following if isinstance(following, NounPhrase) else chunk
    return chunk


class Analyser:
    """A tokeniser, tagger and chunker with a lexicon.

    Args:
        lexicon: The lexicon.
        tagger: The tagger; by default the shipped one.
    """

    def __init__(self, lexicon: Lexicon, tagger: Tagger | None = None) -> None:
        self.lexicon = lexicon
        morphology = Morphology(lexicon)
        self.book = WordBook(lexicon, morphology)
        self.tagger = tagger if tagger is not None else Tagger(lexicon)
        self.chunker = Chunker(lexicon, morphology)

    def chunks(self, text: str) -> Iterator[list[Chunk]]:
        """Yield the chunks of each English sentence."""
        for tokens, words, tags in self._tagged(text):
            yield self.chunker.chunk(tokens, words, tags)

    def read(self, text: str) -> Iterator[tuple[list[Token], list[Chunk]]]:
        """Yield the tokens and the chunks of each English sentence."""
        for tokens, words, tags in self._tagged(text):
            yield tokens, self.chunker.chunk(tokens, words, tags)

    def nouns(self, text: str) -> Iterator[str]:
        """Yield every noun of the English sentences in the singular, repeats included."""
        for _, words, tags in self._tagged(text):
            yield from (
                word.noun_lemma for word, tag in zip(words, tags, strict=True) if tag == "N"
            )

    def tagged_lemmas(
        self, text: str, lemma: Callable[[str], str]
    ) -> Iterator[tuple[list[str], list[str]]]:
        """Yield the lemmas of each English sentence, with the tags of their words."""
        for _, words, tags in self._tagged(text):
            yield [lemma(word.lower) for word in words], tags

    def _tagged(self, text: str) -> Iterator[tuple[list[Token], list[Word], list[str]]]:
        word = self.book.word
        for tokens in sentences(text):
            words = [word(token.text) for token in tokens]
            # A text in another language gives nothing, instead of a wrong zero.
            if not _foreign(words):
                yield tokens, words, self.tagger.tag(words)


@lru_cache(maxsize=1)
def shared_analyser() -> Analyser:
    """Return the analyser of the shipped lexicon, which the first call builds."""
    return Analyser(load_lexicon())


def _foreign(words: list[Word]) -> bool:
    """Return whether most words of a sentence are unknown, so that it is not English."""
    # Numbers and marks are in no lexicon, and are the same in all languages.
    spelt = [word.known for word in words if word.lower[0].isalpha()]
    return len(spelt) >= _FEW and 2 * sum(spelt) < len(spelt)


@lru_cache(maxsize=16_384)
def lemma_key(text: str) -> tuple[str, ...] | str:
    """Return a key that is equal for phrases with the same words in any of their forms.

    The key ignores articles, forms of "be" and possessives: "is riding a" equals "riding". The key
    of a phrase that has only such words is the phrase itself.
    """
    words = (word for word in _WORD.findall(text.lower()) if word not in _UNSAID)
    return tuple(_lemma(word) for word in words) or text.casefold()


def _lemma(text: str) -> str:
    word = shared_analyser().book.word(text)
    # The commoner reading, since both sides of a comparison are read by it alike.
    return word.verb_lemma if word.verb > word.noun else word.noun_lemma


OBJECTS_LABEL = "objects-2"
"""The version of the rules of objects, increased when their results change."""

# Nouns of places in the image and of kinds, which name nothing that it shows.
_VAGUE = MEDIUM_NOUNS | listed(
    "view top side front back part middle center end kind sort type way direction background "
    "foreground distance lot number variety"
)
_NAMES = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMERALS = {name: number for number, name in enumerate((*_NAMES, "eleven", "twelve"), start=2)}
_NUMBERS = {name: _NUMERALS[name] for name in _NAMES} | {"couple": 2, "pair": 2, "both": 2}
# Longer numbers are years, prices and the like, not counts of things.
_MOST_DIGITS = 3


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
    sentences_read = []
    for tokens, found in shared_analyser().read(text):
        chunks = without_measures(found)
        mark_absent(chunks)
        sentences_read.append(_sentence(text, tokens, without_quoted(text, chunks)))
    return sentences_read


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
        # The largest: "two of three dogs" shows three.
        number=max((_number(text[start:end]) for start, end in words), default=0),
        words=tuple(words),
    )


def _number(word: str, names: Mapping[str, int] = _NUMBERS) -> int:
    """Return the number that a word states; 0 if it is none, or one."""
    if word.isascii() and word.isdigit() and len(word) <= _MOST_DIGITS:
        # One is what a noun in the singular says anyway.
        return int(word) if int(word) > 1 else 0
    return names.get(word.lower(), 0)


# "5-year-old", "1/2" and "3.5" are other words, and count nothing.
_PRINTED_WORD = re.compile(r"[^\s,;]+")
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
    words = _PRINTED_WORD.findall(phrase)
    noun = words[-length:]
    numbers = [number for word in words[:-length] if (number := _number(word, _NUMERALS))]
    # A noun in the singular is part of a compound whose end the tagger took for another word.
    is_plural = noun[-1].lower() != found.head or found.head in _ALIKE
    # Of two numbers, which one counts can't be known: "two of five dogs".
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
