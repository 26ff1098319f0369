"""Claims of sentences that spaCy parsed, in the form that the rule extractor returns.

Verbs relate their subjects to their objects and to the objects of their prepositions; adjectives
are attributes; a noun's prepositions and owner are relations of the noun. A tangible thing in no
other claim is present. The labels are those of spaCy's English pipelines (ClearNLP).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from hallujudge.metrics.framework.claims import Modality

from . import ExtractedTriplet
from . import Span as Place
from .parsed_phrases import (
    Phrases,
    end_of,
    is_noun,
    is_side,
    modalities,
    placed,
    prepositions,
    together,
)
from .rules.claim_building import Claims, Mentions, ing_form
from .rules.lexicon import Lexicon, Morphology
from .rules.phrases import (
    CAUSING,
    HEDGES,
    OWNED,
    SAYING_NOTHING,
    Chunk,
    NounPhrase,
    is_shower,
    worth_stating,
)
from .rules.word_lists import EVIDENCE_PREPOSITIONS, MEDIUM_NOUNS, PRESENTING_VERBS, RAISING, listed

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span, Token


_SUBJECTS = ("nsubj", "nsubjpass")
_OBJECTS = ("dobj", "obj")
_NEGATIONS = listed("not n't never hardly scarcely nor")
# Nouns of phrases that only link sentences: "in addition".
_DISCOURSE = listed(
    "addition contrast conclusion comparison summary fact general particular case essence reality "
    "hand word time example instance moment"
)
_DEEPEST = 12
"""How many governors are followed to find a subject."""


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
        self._phrases = Phrases(self._lexicon, self._morphology)
        self._claims = Claims()
        for sentence in doc.sents:
            if not sentence.text.rstrip().endswith("?"):
                self._sentence(sentence)
        ordered = sorted(self._claims.found, key=lambda claim: (claim.start, claim.end))
        self.found += [_moved(claim, offset) for claim in ordered]

    def _sentence(self, sentence: Span) -> None:
        put = modalities(sentence)
        self._claims.next_sentence([_as_chunk(token, put) for token in sentence])
        nouns = [token for token in sentence if is_noun(token)]
        for noun in nouns:
            self._mention(noun)
        for token in sentence:
            if token.pos_ in ("VERB", "AUX") and token.dep_ not in ("aux", "auxpass", "amod"):
                self._verb(token)
        for noun in nouns:
            self._noun(noun)
        verbless = not any(token.pos_ in ("VERB", "AUX") for token in sentence)
        for noun in nouns:
            phrase = self._phrases.of(noun)
            if worth_stating(phrase, verbless) and not is_side(noun):
                self._claims.state(phrase)

    def _mention(self, noun: Token) -> None:
        phrase = self._phrases.of(noun)
        if phrase.pronoun:
            excluded: tuple[NounPhrase, ...] = ()
            if noun.dep_ in (*_OBJECTS, "pobj"):
                verb = noun.head if noun.dep_ != "pobj" else noun.head.head
                named = [self._phrases.of(each) for each in _own_subjects(verb)]
                excluded = tuple(each.named or each for each in named)
            phrase.named = self._mentions.named(phrase.text, excluded=excluded)
        self._mentions.saw(phrase, subject=noun.dep_ in _SUBJECTS)

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
            elif child.dep_ == "amod" and child.i > noun.i:
                self._claims.attribute(phrase, child.text.lower(), child.idx, end_of(child), False)
            elif not (phrase.lemma in MEDIUM_NOUNS or phrase.pronoun or is_side(noun)):
                for prep in prepositions(child):
                    self._place((phrase,), "", prep, phrase.negated)

    def _owner(self, owner: Token, phrase: NounPhrase) -> None:
        if owner.text.lower() in OWNED:
            named = self._mentions.named(owner.text.lower())
            if named is not None and named is not phrase and phrase.tangible:
                self._claims.own(named, phrase)
        elif is_noun(owner):
            self._claims.relate(self._phrases.of(owner), "has", phrase, False)

    def _place(
        self, subjects: tuple[NounPhrase, ...], said: str, prep: Token, negated: bool
    ) -> bool:
        """Relate subjects to the objects of a preposition; return whether there is one."""
        text, target = placed(prep)
        aside = text in EVIDENCE_PREPOSITIONS or target is None
        if target is None or aside or not is_noun(target) or target.lemma_ in _DISCOURSE:
            return False
        relation = f"{said} {text}".strip()
        denied = negated or any(child.dep_ == "neg" for child in prep.children)
        for each in together(target):
            for subject in subjects:
                self._claims.relate(subject, relation, self._phrases.of(each), denied)
        further = [c for c in prep.children if c.dep_ == "conj" and c.pos_ == "ADP"]
        for other in further[:1]:
            self._place(subjects, said, other, negated)
        return True

    # Verbs.

    def _verb(self, verb: Token) -> None:
        if any(child.dep_ == "expl" and child.tag_ == "EX" for child in verb.children):
            self._existence(verb)
            return
        subjects = tuple(self._phrases.of(each) for each in self._subjects(verb))
        if not subjects:
            return
        lemma, negated = verb.lemma_.lower(), _denied(verb)
        passive = any(child.dep_ == "auxpass" for child in verb.children)
        shown = lemma in PRESENTING_VERBS
        if shown and not passive and is_shower(subjects[0]):
            self._shown(verb)
            return
        said = (
            "" if lemma == "be" or (shown and passive) else _with_particle(verb, verb.text.lower())
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
            if dep in (*_OBJECTS, "attr", "oprd", "dative") and is_noun(child):
                relation = "is" if dep in ("attr", "oprd") else said
                any_said = self._relate(subjects, relation or "is", child, negated) or any_said
            elif dep in ("acomp", "oprd"):
                any_said = True
                self._predicates(child, subjects, negated)
            elif dep == "xcomp" and verb.lemma_.lower() in RAISING:
                any_said = True
            for prep in prepositions(child):
                any_said = self._place(subjects, said, prep, negated) or any_said
        gap = self._gap(verb)
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
        if verb.lemma_.lower() in SAYING_NOTHING or (verb.dep_ == "xcomp" and verb.tag_ == "VB"):
            return
        text = verb.text.lower()
        if verb.tag_ not in ("VBG", "VBN"):
            text = ing_form(verb.lemma_.lower())
        text = _with_particle(verb, text)
        for subject in subjects:
            self._claims.attribute(subject, text, verb.idx, end_of(verb), negated)

    def _existence(self, verb: Token) -> None:
        negated = _denied(verb)
        for child in verb.children:
            if child.dep_ in ("attr", *_SUBJECTS, *_OBJECTS) and is_noun(child):
                self._present(verb, child, negated)

    def _shown(self, verb: Token) -> None:
        for child in verb.children:
            if child.dep_ in _OBJECTS and is_noun(child):
                self._present(verb, child, _denied(verb))

    def _present(self, verb: Token, noun: Token, negated: bool) -> None:
        """Add the places of things that exist or that the image shows."""
        phrases = tuple(self._phrases.of(each) for each in together(noun))
        for phrase in phrases:
            phrase.negated = phrase.negated or negated
        for child in verb.children:
            for prep in prepositions(child):
                self._place(phrases, "", prep, False)

    # Subjects.

    def _subjects(self, verb: Token) -> list[Token]:
        """Return the heads of a verb's subjects."""
        for _ in range(_DEEPEST):
            own = _own_subjects(verb)
            if own:
                relative = verb.dep_ == "relcl" and own[0].tag_ in ("WDT", "WP")
                return list(_antecedents(verb)) if relative else own
            if verb.dep_ in ("acl", "relcl"):
                return list(_antecedents(verb))
            caused = verb.dep_ in ("xcomp", "ccomp") and verb.head.lemma_.lower() in CAUSING
            objects = [c for c in verb.head.children if c.dep_ in _OBJECTS and is_noun(c)]
            if caused and objects:
                return objects[:1]
            above = _governor(verb)
            if above is None:
                return []
            verb = above
        return []

    def _gap(self, verb: Token) -> Token | None:
        """Return the noun that a relative clause describes, if it is the verb's object."""
        if verb.dep_ != "relcl" or not is_noun(verb.head):
            return None
        own = _own_subjects(verb)
        if not own or own[0].tag_ in ("WDT", "WP"):
            return None
        filling = (*_OBJECTS, "attr", "acomp", "prep", "ccomp")
        taken = [child for child in verb.children if child.dep_ in filling]
        free = not taken or (taken[0].dep_ in _OBJECTS and taken[0].tag_ in ("WDT", "WP"))
        return verb.head if free and verb.lemma_ != "be" else None


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
    chunk = Chunk("", "", token.i, token.i + 1, token.idx, end_of(token))
    chunk.modality = put.get(token.i, Modality.STATED)
    return chunk


def _own_subjects(verb: Token) -> list[Token]:
    # A parser may attach the subject to the auxiliary.
    auxiliaries = [child for child in verb.children if child.dep_ in ("aux", "auxpass")]
    siblings = [child for each in (verb, *auxiliaries) for child in each.children]
    first = next((c for c in siblings if c.dep_ in _SUBJECTS and is_noun(c)), None)
    return [] if first is None else list(together(first))


def _antecedents(verb: Token) -> Iterator[Token]:
    head = verb.head
    if is_noun(head):
        yield head


def _governor(verb: Token) -> Token | None:
    """Return the verb whose subject a verb without a subject shares."""
    if verb.dep_ not in ("conj", "xcomp", "advcl", "pcomp", "ccomp", "dep"):
        return None
    head = verb.head
    # A token is a new object each time, so that the root is known by its place.
    while head.pos_ in ("ADP", "SCONJ", "ADJ", "ADV") and head.head.i != head.i:
        head = head.head
    return head if head.pos_ in ("VERB", "AUX") and head.i != verb.i else None


def _denied(verb: Token) -> bool:
    own = any(c.dep_ == "neg" or c.text.lower() in _NEGATIONS for c in verb.children)
    if own or verb.dep_ != "conj":
        return own
    siblings = list(verb.head.children)
    alternative = any(c.dep_ == "cc" and c.text.lower() in ("or", "nor") for c in siblings)
    return alternative and any(c.dep_ == "neg" for c in siblings)


def _with_particle(verb: Token, text: str) -> str:
    particle = next((child for child in verb.children if child.dep_ == "prt"), None)
    return text if particle is None else f"{text} {particle.text.lower()}"
