"""Extractors that use an installed library: triplets by spaCy's trees, nouns by nltk."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache, partial
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from msgspec.structs import replace

from hallujudge.metrics.framework.claims import Modality

from .. import install_advice
from ..errors import InvalidInputError, MissingExtraError
from ..threads import check_wanted, in_thread, renew_after_fork
from . import ExtractedTriplet
from . import Span as Place
from .parsed_phrases import (
    OBJECTS,
    SUBJECTS,
    Phrases,
    end_of,
    gap_of,
    is_denied,
    is_noun,
    is_side,
    modalities,
    own_subjects,
    pieces,
    placed,
    prepositions,
    subjects_of,
    together,
    with_particle,
)
from .rules.claim_building import Claims, Mentions, ing_form
from .rules.lexicon import Lexicon, Morphology, load_lexicon
from .rules.phrases import (
    HEDGES,
    OWNED,
    SAYING_NOTHING,
    Chunk,
    NounPhrase,
    is_shower,
    worth_stating,
)
from .rules.word_lists import EVIDENCE_PREPOSITIONS, MEDIUM_NOUNS, PRESENTING_VERBS, RAISING, listed
from .rules.words import without_markup

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Span, Token

# Part of signatures; increased when the claims of the same trees change.
_VERSION = "spacy-2"
_SUGGESTED = "en_core_web_sm"
_LABELS = {"nsubj", "dobj", "prep", "pobj"}
"""Labels of the parser that the claims rely on; those of spaCy's own English pipelines."""


# Components that the claims do not need; leaving them out saves time and memory.
_UNUSED = ("ner", "textcat", "entity_linker")
_DATA = {
    "punkt_tab": "tokenizers/punkt_tab/english",
    "averaged_perceptron_tagger_eng": "taggers/averaged_perceptron_tagger_eng",
    "wordnet": "corpora/wordnet",
}

_ADVICE = f"python -m nltk.downloader {' '.join(_DATA)}"


class SpacyTripletExtractor:
    """Extracts (subject, relation, object) claims from the trees of a spaCy pipeline.

    Args:
        pipeline: The pipeline.

    Raises:
        InvalidInputError: It is not English, or its parser has other labels.
    """

    def __init__(self, pipeline: Language) -> None:
        # Before any text: a parser with other labels finds no claims, which would look like a clean
        # answer.
        _check(pipeline)
        self._pipeline = pipeline
        self._lexicon = load_lexicon()
        self._renew()
        renew_after_fork(self._renew)
        self.label = f"{_VERSION}/{pipeline_label(pipeline)}"

    def _renew(self) -> None:
        """Take a new lock: another thread may have held the old one when the process forked."""
        self._lock = threading.Lock()

    def extract(self, text: str) -> list[ExtractedTriplet]:
        """Return the claims of one text, in its order; its first 200,000 characters are read."""
        claims = ParsedTriplets(self._lexicon)
        # Without markup, whose signs a parser takes for words.
        for offset, piece in pieces(without_markup(text)):
            check_wanted()
            # A pipeline keeps every new word, and is not safe in several threads.
            with self._lock, self._pipeline.memory_zone():
                claims.read(self._pipeline(piece), offset)
        return claims.found

    async def extract_many(
        self,
        texts: Sequence[str],
        questions: Sequence[str] = (),  # noqa: ARG002  # of the interface
    ) -> list[list[ExtractedTriplet]]:
        """Return the claims of each text, parsed in a thread; questions are not read."""
        return [await in_thread(partial(self.extract, text)) for text in texts]


# Few, because a large pipeline takes hundreds of megabytes.
@lru_cache(maxsize=2)
def shared_extractor(name: str) -> SpacyTripletExtractor:
    """Return the extractor of a pipeline, which is loaded once.

    Raises:
        MissingExtraError: spaCy or the pipeline is not installed.
        InvalidInputError: The pipeline has no suitable parser.
    """
    needed = f"the extractor 'spacy' needs the pipeline {name!r}"
    return SpacyTripletExtractor(load_pipeline(name, needed, suggested=_SUGGESTED, exclude=_UNUSED))


class NltkNounExtractor:
    """Extracts words whose tag begins with NN, as lemmas; repeats and upper case are kept.

    nltk's data are not part of Hallujudge: the user installs them.

    Raises:
        MissingExtraError: A part of the data is not installed.
    """

    def __init__(self) -> None:
        import nltk

        self._nltk = nltk
        if missing := [name for name, path in _DATA.items() if not self._has(path)]:
            raise MissingExtraError(
                f"the nouns of AMBER's released script need nltk's data {', '.join(missing)}: "
                f"{_ADVICE}",
                metadata={"feature": "amber nouns", "extra": "nltk data"},
            )
        # Captions repeat their nouns, and a lemma depends on nothing else.
        self._lemma = lru_cache(maxsize=1 << 16)(nltk.WordNetLemmatizer().lemmatize)

    def _has(self, path: str) -> bool:
        # nltk reads data from an archive as well, and its downloader leaves some of them packed.
        for name in (path, f"{path}.zip"):
            try:
                self._nltk.data.find(name)
            except LookupError:
                continue
            return True
        return False

    @property
    def label(self) -> str:
        """``nltk-`` and the version."""
        return f"nltk-{self._nltk.__version__}"

    def extract(self, text: str) -> tuple[str, ...]:
        """Return the nouns of one text in its order."""
        tagged = self._nltk.pos_tag(self._nltk.word_tokenize(text))
        return tuple(self._lemma(word) for word, tag in tagged if tag.startswith("NN"))


def installed_pipelines() -> tuple[str, ...]:
    """Return the names of the pipelines that are installed as packages."""
    return tuple(sorted(each.name for each in entry_points(group="spacy_models")))


def load_pipeline(name: str, needed: str, *, suggested: str, exclude: Sequence[str]) -> Language:
    """Return an installed pipeline.

    Args:
        name: Name of an installed pipeline, or a folder.
        needed: What needs it, as the beginning of a message.
        suggested: The pipeline whose download the message names.
        exclude: Components that are not loaded.

    Raises:
        MissingExtraError: spaCy or the pipeline is not installed.
    """
    advice = f"{install_advice('spacy')} && python -m spacy download {suggested}"
    metadata = {"feature": "spacy", "extra": "spacy"}
    try:
        spacy = import_module("spacy")
    except ImportError as err:
        raise MissingExtraError(
            f"{needed}, but spaCy is not installed: {advice}", metadata=metadata
        ) from err
    try:
        loaded: Language = spacy.load(name, exclude=list(exclude))
    except OSError as err:
        # A pipeline of the user's own is not what spaCy's command downloads.
        other = "" if name == suggested else f"; install it, or use {suggested}"
        raise MissingExtraError(
            f"{needed}, but it is not installed{other}: {advice}", metadata=metadata
        ) from err
    return loaded


def pipeline_label(pipeline: Language) -> str:
    """Return the name and version of a pipeline, such as ``en_core_web_sm-3.8.0``."""
    meta = pipeline.meta
    # spaCy's packages are named so; the pipeline's own name lacks the language.
    return f"{meta['lang']}_{meta['name']}-{meta['version']}"


def _check(pipeline: Language) -> None:
    name = pipeline_label(pipeline)
    # The word lists and the lexicon are English.
    if pipeline.lang != "en":
        raise InvalidInputError(
            f"the spaCy pipeline {name!r} reads {pipeline.lang!r}; use an English one"
        )
    # A pipeline may consist of a tagger alone, or of components that the user has chosen.
    labels = set(pipeline.get_pipe("parser").labels) if "parser" in pipeline.pipe_names else set()
    if missing := sorted(_LABELS - labels):
        raise InvalidInputError(
            f"the spaCy pipeline {name!r} has no parser with the labels {', '.join(missing)}; use "
            f"one of spaCy's English pipelines, such as {_SUGGESTED}"
        )


# Nouns of phrases that only link sentences: "in addition".
_DISCOURSE = listed(
    "addition contrast conclusion comparison summary fact general particular case essence reality "
    "hand word time example instance moment"
)


class ParsedTriplets:
    """Collects the claims of a text from its parsed pieces.

    Args:
        lexicon: The lexicon of the rules: visible adjectives, persons, tangible nouns.
    """

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self._morphology = Morphology(lexicon)
        self._mentions = Mentions(lexicon)
        self._claims = Claims()
        self._phrases = Phrases(lexicon, self._morphology)
        self.found: list[ExtractedTriplet] = []

    def read(self, doc: Doc, offset: int = 0) -> None:
        """Add the claims of a parsed piece of the text.

        Args:
            doc: The piece.
            offset: Where it begins in the text.
        """
        # Tokens are known by their index, which starts at 0 in each piece; pronouns are resolved
        # across pieces.
        self._phrases = Phrases(self._lexicon, self._morphology)
        self._claims = Claims()
        for sentence in doc.sents:
            # A question claims nothing.
            if not sentence.text.rstrip().endswith("?"):
                self._sentence(sentence)
        # Claims of nouns follow those of all verbs of a sentence; readers expect the text's order.
        ordered = sorted(self._claims.found, key=lambda claim: (claim.start, claim.end))
        self.found += [_moved(claim, offset) for claim in ordered]

    def _sentence(self, sentence: Span) -> None:
        put = modalities(sentence)
        # The claims take a word's modality by its index from here.
        self._claims.next_sentence([_as_chunk(token, put) for token in sentence])
        nouns = [token for token in sentence if is_noun(token)]
        # All nouns are seen before a verb is read, whose subject may be a pronoun of an earlier
        # one.
        for noun in nouns:
            self._mention(noun)
        for token in sentence:
            # An auxiliary belongs to its verb, and a participle before a noun is an attribute.
            if token.pos_ in ("VERB", "AUX") and token.dep_ not in ("aux", "auxpass", "amod"):
                self._verb(token)
        for noun in nouns:
            self._noun(noun)
        verbless = not any(token.pos_ in ("VERB", "AUX") for token in sentence)
        # Last, because only what no other claim has used is said to be present.
        for noun in nouns:
            phrase = self._phrases.of(noun)
            if worth_stating(phrase, verbless) and not is_side(noun):
                self._claims.state(phrase)

    def _mention(self, noun: Token) -> None:
        phrase = self._phrases.of(noun)
        if phrase.pronoun:
            # "It" as an object is not the verb's own subject, which would be "itself".
            excluded: tuple[NounPhrase, ...] = ()
            if noun.dep_ in (*OBJECTS, "pobj"):
                verb = noun.head if noun.dep_ != "pobj" else noun.head.head
                named = [self._phrases.of(each) for each in own_subjects(verb)]
                excluded = tuple(each.named or each for each in named)
            phrase.named = self._mentions.named(phrase.text, excluded=excluded)
        self._mentions.saw(phrase, subject=noun.dep_ in SUBJECTS)

    # Nouns.

    def _noun(self, noun: Token) -> None:
        phrase = self._phrases.of(noun)
        self._claims.attributes(phrase)
        for child in noun.children:
            if child.dep_ == "poss":
                self._owner(child, phrase)
            elif child.dep_ == "appos" and is_noun(child):
                for each in together(child):
                    self._claims.relate(phrase, "is", self._phrases.of(each), False)
            # After the noun: "something red". One before it is part of the phrase.
            elif child.dep_ == "amod" and child.i > noun.i:
                self._claims.attribute(phrase, child.text.lower(), child.idx, end_of(child), False)
            # "A picture of a dog" has the dog in it, and says nothing of a picture.
            elif not (phrase.lemma in MEDIUM_NOUNS or phrase.pronoun or is_side(noun)):
                for prep in prepositions(child):
                    self._place((phrase,), "", prep, phrase.negated)

    def _owner(self, owner: Token, phrase: NounPhrase) -> None:
        if owner.text.lower() in OWNED:
            named = self._mentions.named(owner.text.lower())
            # "Her hat" is a claim about the woman only if it is known who she is.
            if named is not None and named is not phrase and phrase.tangible:
                self._claims.own(named, phrase)
        elif is_noun(owner):
            self._claims.relate(self._phrases.of(owner), "has", phrase, False)

    def _place(
        self, subjects: tuple[NounPhrase, ...], said: str, prep: Token, negated: bool
    ) -> bool:
        """Relate subjects to the objects of a preposition; return whether there is one."""
        text, target = placed(prep)
        # "Based on the shadows" gives the reason of a claim, and no place.
        aside = text in EVIDENCE_PREPOSITIONS or target is None
        if target is None or aside or not is_noun(target) or target.lemma_ in _DISCOURSE:
            return False
        relation = f"{said} {text}".strip()
        denied = negated or any(child.dep_ == "neg" for child in prep.children)
        for each in together(target):
            for subject in subjects:
                self._claims.relate(subject, relation, self._phrases.of(each), denied)
        further = [c for c in prep.children if c.dep_ == "conj" and c.pos_ == "ADP"]
        # One, since each reads on by itself: "in the box, on it and under it".
        for other in further[:1]:
            self._place(subjects, said, other, negated)
        return True

    # Verbs.

    def _verb(self, verb: Token) -> None:
        if any(child.dep_ == "expl" and child.tag_ == "EX" for child in verb.children):
            self._existence(verb)
            return
        subjects = tuple(self._phrases.of(each) for each in subjects_of(verb))
        if not subjects:
            return
        lemma, negated = verb.lemma_.lower(), is_denied(verb)
        passive = any(child.dep_ == "auxpass" for child in verb.children)
        shown = lemma in PRESENTING_VERBS
        # "The image shows a dog" is about the dog, and not about the image.
        if shown and not passive and is_shower(subjects[0]):
            self._shown(verb)
            return
        said = (
            "" if lemma == "be" or (shown and passive) else with_particle(verb, verb.text.lower())
        )
        if not self._complements(verb, subjects, said, negated) and said:
            self._activity(verb, subjects, negated)

    def _complements(
        self, verb: Token, subjects: tuple[NounPhrase, ...], said: str, negated: bool
    ) -> bool:
        """Add the claims about a verb's objects, attributes and places; return if there are any."""
        any_said = False
        for child in verb.children:
            dep = child.dep_
            if dep in (*OBJECTS, "attr", "oprd", "dative") and is_noun(child):
                relation = "is" if dep in ("attr", "oprd") else said
                any_said = self._relate(subjects, relation or "is", child, negated) or any_said
            elif dep in ("acomp", "oprd"):
                any_said = True
                self._predicates(child, subjects, negated)
            elif dep == "xcomp" and verb.lemma_.lower() in RAISING:
                any_said = True
            for prep in prepositions(child):
                any_said = self._place(subjects, said, prep, negated) or any_said
        gap = gap_of(verb)
        if gap is not None:
            any_said = self._relate(subjects, said or "is", gap, negated) or any_said
        return any_said

    def _relate(
        self, subjects: tuple[NounPhrase, ...], relation: str, target: Token, negated: bool
    ) -> bool:
        said = False
        for each in together(target):
            denied = negated or any(child.dep_ == "neg" for child in each.children)
            phrase = self._phrases.of(each)
            said = said or not phrase.pronoun or phrase.named is not None
            for subject in subjects:
                self._claims.relate(subject, relation, phrase, denied)
        return said

    def _predicates(
        self, adjective: Token, subjects: tuple[NounPhrase, ...], negated: bool
    ) -> None:
        for each in together(adjective):
            # "Is likely to" has an adjective in the tree, but says nothing of its noun.
            if each.lemma_.lower() in HEDGES:
                continue
            denied = negated or any(child.dep_ == "neg" for child in each.children)
            for subject in subjects:
                text = each.text.lower()
                self._claims.attribute(subject, text, each.idx, end_of(each), denied)
            for child in each.children:
                for prep in prepositions(child):
                    self._place(subjects, each.text.lower(), prep, denied)

    def _activity(self, verb: Token, subjects: tuple[NounPhrase, ...], negated: bool) -> None:
        """Add a verb without object and place as an attribute: (dog, is, running)."""
        # An image can't show that a thing seems or depends; "wants to run" does not say that
        # anybody runs.
        if verb.lemma_.lower() in SAYING_NOTHING or (verb.dep_ == "xcomp" and verb.tag_ == "VB"):
            return
        text = verb.text.lower()
        # Attributes are in one form, so that "runs" and "is running" are the same claim.
        if verb.tag_ not in ("VBG", "VBN"):
            text = ing_form(verb.lemma_.lower())
        text = with_particle(verb, text)
        for subject in subjects:
            self._claims.attribute(subject, text, verb.idx, end_of(verb), negated)

    def _existence(self, verb: Token) -> None:
        negated = is_denied(verb)
        for child in verb.children:
            if child.dep_ in ("attr", *SUBJECTS, *OBJECTS) and is_noun(child):
                self._present(verb, child, negated)

    def _shown(self, verb: Token) -> None:
        for child in verb.children:
            if child.dep_ in OBJECTS and is_noun(child):
                self._present(verb, child, is_denied(verb))

    def _present(self, verb: Token, noun: Token, negated: bool) -> None:
        """Add the places of things that exist or that the image shows."""
        phrases = tuple(self._phrases.of(each) for each in together(noun))
        for phrase in phrases:
            phrase.negated = phrase.negated or negated
        for child in verb.children:
            for prep in prepositions(child):
                self._place(phrases, "", prep, False)


def _moved(claim: ExtractedTriplet, offset: int) -> ExtractedTriplet:
    if not offset:
        return claim
    first, second = claim.subject_span, claim.object_span
    return replace(
        claim,
        start=claim.start + offset,
        end=claim.end + offset,
        subject_span=Place(first.start + offset, first.end + offset),
        object_span=Place(second.start + offset, second.end + offset),
    )


def _as_chunk(token: Token, put: dict[int, Modality]) -> Chunk:
    # The claims are those of the rules, which know chunks and no trees.
    chunk = Chunk("", token.i, token.i + 1, token.idx, end_of(token), "")
    chunk.modality = put.get(token.i, Modality.STATED)
    return chunk
