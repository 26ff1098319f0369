"""Sentences that spaCy parsed: noun phrases, prepositions, subjects and modality."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hallujudge.metrics.framework.claims import Modality

from .rules.lexicon import Lexicon, Morphology
from .rules.modality import GUESSING, HEDGING, MODALS, SEEMING
from .rules.phrases import CAUSING, NounPhrase
from .rules.word_lists import EVIDENCE_PREPOSITIONS, MEASURE_NOUNS, listed

if TYPE_CHECKING:
    from spacy.tokens import Span, Token


_IF = listed("if unless")
_REASONS = listed("because as since while although though when until before after")
_UNCERTAIN = listed("possible likely unlikely probable doubtful unclear uncertain")


def modalities(sentence: Span) -> dict[int, Modality]:
    """Return the modality of each token: its own, or that of the word on which it depends."""
    # From the root down, because a word's modality may be that of the word on which it depends.
    found: dict[int, Modality] = {}
    waiting = [sentence.root]
    while waiting:
        token = waiting.pop()
        above = found.get(token.head.i)
        found[token.i] = _own(token) or _inherited(token, above)
        waiting.extend(child for child in token.children if child.i not in found)
    return found


def _own(token: Token) -> Modality | None:
    """Return the modality that a word gets from its own dependents."""
    # Conditions first: "if it could rain" is a condition, whatever modal is in it.
    for child in token.children:
        lower = child.text.lower()
        if child.dep_ == "mark" and lower in _IF:
            return Modality.HEDGED if _unreal(child) else Modality.CONDITIONAL
        if child.dep_ == "advcl" and any(map(_conditional, child.children)):
            return Modality.CONDITIONAL
    for child in token.children:
        lower = child.text.lower()
        if child.dep_ == "aux" and lower in MODALS:
            return Modality.HEDGED
        if child.dep_ in ("advmod", "mark") and (lower in HEDGING or lower == "whether"):
            return Modality.HEDGED
        if child.dep_ == "cc" and lower == "or":
            return Modality.HEDGED
    if token.dep_ == "conj" and any(
        each.dep_ == "cc" and each.text.lower() == "or" for each in token.head.children
    ):
        return Modality.HEDGED
    return _by_governor(token)


def _conditional(token: Token) -> bool:
    return token.dep_ == "mark" and token.text.lower() in _IF and not _unreal(token)


def _unreal(mark: Token) -> bool:
    """Return whether "if" is that of "as if"."""
    # "As if" compares with what is not so.
    return bool(mark.i) and mark.nbor(-1).text.lower() == "as"


def _by_governor(token: Token) -> Modality | None:
    lemma, dep = token.head.lemma_.lower(), token.dep_
    if dep in ("xcomp", "oprd", "acomp") and lemma in SEEMING:
        return Modality.HEDGED
    if dep in ("ccomp", "dobj", "xcomp") and lemma in GUESSING:
        return Modality.HEDGED
    uncertain = any(
        child.dep_ == "acomp" and child.lemma_.lower() in _UNCERTAIN for child in token.children
    )
    return Modality.HEDGED if uncertain else None


def _inherited(token: Token, above: Modality | None) -> Modality:
    """Return the modality of the governor, unless the word begins something stated."""
    # Nothing above hedges, so that there is nothing to inherit.
    if above is None or above is Modality.STATED:
        return Modality.STATED
    # Everything within a condition is conditional, its subjects and reasons, too.
    if above is Modality.CONDITIONAL:
        return above
    marks = {child.text.lower() for child in token.children if child.dep_ == "mark"}
    own_clause = token.dep_ == "conj" and any(
        child.dep_ in ("nsubj", "nsubjpass", "expl") for child in token.children
    )
    evidence = token.dep_ == "prep" and token.text.lower() in EVIDENCE_PREPOSITIONS
    # "The man might run because it rains": the man and the rain are stated, the running is not.
    stated = token.dep_ in ("nsubj", "nsubjpass") or marks & _REASONS or own_clause or evidence
    return Modality.STATED if stated else above


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
    # spaCy's conjuncts are those of the whole list, before the token too.
    for other in token.conjuncts[:_MOST_TOGETHER]:
        # A parser sometimes joins a noun with a verb or an adjective, which are not a list.
        if other.i > token.i and (other.pos_ == token.pos_ or (is_noun(other) and is_noun(token))):
            yield other


def placed(prep: Token) -> tuple[str, Token | None]:
    """Return the text of a preposition and its object: "in front of" and the noun after it."""
    text = prep.text.lower()
    if prep.head.i == prep.i - 1 and prep.head.dep_ == "advmod":
        text = f"{prep.head.text.lower()} {text}"
    target = next((child for child in prep.children if child.dep_ in ("pobj", "obj")), None)
    # Prepositions in a row, such as "out of".
    if target is None:
        inner = next((child for child in prep.children if child.dep_ == "prep"), None)
        # A preposition further away belongs to another phrase.
        if inner is None or inner.i != prep.i + 1:
            return text, None
        return f"{text} {inner.text.lower()}", placed(inner)[1] if inner.i > prep.i else None
    if target.lemma_.lower() in _SIDES:
        for child in target.children:
            # Others than "of" and "to" begin a phrase of their own: "on the left with a hat".
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
            # "Next to" is one preposition; "sits there on a chair" has an adverb and another.
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
        # "A couple of pairs of shoes" has two.
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
        # The lexicon has common nouns; a proper name may be of anything.
        phrase.tangible = token.pos_ == "NOUN" and self._morphology.tangible(phrase.lemma)
        first = token.i
        for child in token.lefts:
            # A sorting adjective is part of the name: "public transport" is not a transport that is
            # public.
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
        # Of "neither a cup nor a fork", only the cup has a word that denies it.
        siblings = token.head.children if token.dep_ == "conj" else ()
        nor = any(each.dep_ == "cc" and each.text.lower() == "nor" for each in siblings)
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
    # A hyphen is a token of its own in "t-shirt"; a comma ends the name.
    return word.i == head.i or (word.dep_ in ("compound", "amod", "punct") and word.text != ",")


def _written(token: Token) -> str:
    """Return the word as written, except for the capital letter of a sentence."""
    starts = token.i == token.sent.start and token.pos_ != "PROPN"
    return str(token.text.lower() if starts else token.text)


SUBJECTS = ("nsubj", "nsubjpass")
"""The labels of subjects."""
# `dobj` is the label of spaCy's English pipelines; `obj` is that of Universal Dependencies.
OBJECTS = ("dobj", "obj")
"""The labels of direct objects."""
_NEGATIONS = listed("not n't never hardly scarcely nor")
# A chain of governors in real captions has two or three; the limit keeps hostile texts cheap.
_DEEPEST = 12


def own_subjects(verb: Token) -> list[Token]:
    """Return the subject of a verb with those coordinated with it; none without one."""
    # A parser may attach the subject to the auxiliary.
    auxiliaries = [child for child in verb.children if child.dep_ in ("aux", "auxpass")]
    siblings = [child for each in (verb, *auxiliaries) for child in each.children]
    # "There" and "it" of "it rains" have other labels, and name nothing.
    first = next((c for c in siblings if c.dep_ in SUBJECTS and is_noun(c)), None)
    return [] if first is None else list(together(first))


def _described(verb: Token) -> list[Token]:
    """Return the noun that a clause describes, as a list; empty if it describes something else."""
    return [verb.head] if is_noun(verb.head) else []


def _governor(verb: Token) -> Token | None:
    """Return the verb whose subject a verb without a subject shares."""
    if verb.dep_ not in ("conj", "xcomp", "advcl", "pcomp", "ccomp", "dep"):
        return None
    head = verb.head
    # A token is a new object each time, so that the root is known by its place.
    while head.pos_ in ("ADP", "SCONJ", "ADJ", "ADV") and head.head.i != head.i:
        head = head.head
    return head if head.pos_ in ("VERB", "AUX") and head.i != verb.i else None


def is_denied(verb: Token) -> bool:
    """Return whether a verb is negated, if only by its conjunct: "does not sit or stand"."""
    own = any(c.dep_ == "neg" or c.text.lower() in _NEGATIONS for c in verb.children)
    if own or verb.dep_ != "conj":
        return own
    siblings = list(verb.head.children)
    alternative = any(c.dep_ == "cc" and c.text.lower() in ("or", "nor") for c in siblings)
    return alternative and any(c.dep_ == "neg" for c in siblings)


def with_particle(verb: Token, text: str) -> str:
    """Return a verb's text with its particle, as in "picks up"."""
    particle = next((child for child in verb.children if child.dep_ == "prt"), None)
    return text if particle is None else f"{text} {particle.text.lower()}"


def subjects_of(verb: Token) -> list[Token]:
    """Return the heads of a verb's subjects."""
    for _ in range(_DEEPEST):
        own = own_subjects(verb)
        if own:
            # "Which" and "who" stand for the noun that their clause describes.
            relative = verb.dep_ == "relcl" and own[0].tag_ in ("WDT", "WP")
            return _described(verb) if relative else own
        if verb.dep_ in ("acl", "relcl"):
            return _described(verb)
        # "The man makes the dog sit": the dog sits.
        caused = verb.dep_ in ("xcomp", "ccomp") and verb.head.lemma_.lower() in CAUSING
        objects = [c for c in verb.head.children if c.dep_ in OBJECTS and is_noun(c)]
        if caused and objects:
            return objects[:1]
        above = _governor(verb)
        if above is None:
            return []
        verb = above
    return []


def gap_of(verb: Token) -> Token | None:
    """Return the noun that a relative clause describes, if it is the verb's object."""
    if verb.dep_ != "relcl" or not is_noun(verb.head):
        return None
    own = own_subjects(verb)
    if not own or own[0].tag_ in ("WDT", "WP"):
        return None
    filling = (*OBJECTS, "attr", "acomp", "prep", "ccomp")
    taken = [child for child in verb.children if child.dep_ in filling]
    # "That" may itself be the object: "the ball that he throws".
    free = not taken or (taken[0].dep_ in OBJECTS and taken[0].tag_ in ("WDT", "WP"))
    return verb.head if free and verb.lemma_ != "be" else None


_LONGEST = 2_000
"""The most characters that are parsed together: a parser's memory grows with them."""
_MOST = 200_000
"""The most characters of a text that are read."""
_LONGEST_WORD = 100


def pieces(text: str) -> Iterator[tuple[int, str]]:
    """Yield parts of a text that are parsed on their own, with their places.

    A part ends after a line or a sentence if it can, else after a word. A part with a word of more
    than a hundred characters is skipped: it is data rather than English.
    """
    start, end = 0, min(len(text), _MOST)
    while start < end:
        stop = min(start + _LONGEST, end)
        if stop < end:
            stop = _break(text, start, stop)
        piece = text[start:stop]
        if all(len(word) <= _LONGEST_WORD for word in piece.split()):
            yield start, piece
        start = stop


def _break(text: str, start: int, stop: int) -> int:
    # Where the least is lost: a parser reads each piece alone.
    for mark in ("\n", ". ", " "):
        # In its second half only, so that pieces do not get short and many.
        at = text.rfind(mark, start + _LONGEST // 2, stop)
        if at > 0:
            return at + len(mark)
    return stop
