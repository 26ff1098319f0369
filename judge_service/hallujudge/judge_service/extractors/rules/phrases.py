"""Noun phrases and verb groups: the parts of a sentence that the rules process."""

from __future__ import annotations

from typing import NamedTuple

from hallujudge.metrics.framework.claims import Modality

from .lexicon import Lexicon
from .word_lists import FEMALE, MALE, MEDIUM_NOUNS, PERSON_WORDS, PRESENTING_VERBS, RAISING, listed
from .words import Word


class Chunk:
    """A part of a sentence.

    ``kind`` is N (noun phrase), V (verb group), I (preposition), A (predicate adjective), X
    (existential "there"), or the tag of a linking word (C , W Q . :).
    """

    __slots__ = ("end", "first", "kind", "last", "modality", "negated", "start", "text")

    def __init__(self, kind: str, text: str, first: int, last: int, start: int, end: int) -> None:
        self.kind = kind
        self.text = text
        self.first = first
        """The first token."""
        self.last = last
        """One past the last token."""
        self.start = start
        """The first character."""
        self.end = end
        """One past the last character."""
        self.negated = False
        self.modality = Modality.STATED
        """Whether the sentence states it, hedges it or makes it a condition."""


class NounPhrase(Chunk):
    """A noun phrase; its text is the name without determiners and attributes."""

    __slots__ = (
        "attributes",
        "determiner",
        "lemma",
        "measured",
        "modifier",
        "name_start",
        "named",
        "plural",
        "possessor",
        "pronoun",
        "tangible",
    )

    def __init__(self, name: str, first: int, last: int, start: int, end: int) -> None:
        super().__init__("N", name, first, last, start, end)
        self.name_start = start
        self.lemma = name
        """The head noun in the singular."""
        self.modifier = ""
        """The word before the head that forms a compound with it; may be empty."""
        self.attributes: list[tuple[str, int, int]] = []
        """Visible adjectives with their places."""
        self.determiner = ""
        self.plural = False
        self.pronoun = False
        self.tangible = False
        self.measured = False
        """Whether it is a measure, such as "group", that may precede "of"."""
        self.possessor: NounPhrase | None = None
        self.named: NounPhrase | None = None
        """The phrase to which a pronoun refers."""


class VerbGroup(Chunk):
    """A verb with its auxiliaries and particle; its text is the main verb as written."""

    __slots__ = ("form", "lemma", "particle", "particle_span", "passive", "singular", "verb_start")

    def __init__(self, text: str, first: int, last: int, start: int, end: int) -> None:
        super().__init__("V", text, first, last, start, end)
        self.verb_start = start
        self.lemma = text
        self.particle = ""
        self.particle_span = (0, 0)
        self.form = "finite"
        """``finite``, ``ing``, ``participle`` or ``infinitive``."""
        self.passive = False
        self.singular = False
        """Whether its first word agrees with a singular subject: "is", "has", "holds"."""


VIEWERS = listed("we you i one viewers")
CAUSING = listed(
    "help make let allow ask cause teach enable invite tell watch see observe show hear keep "
    "encourage force order lead prompt get depict capture feature"
)
# Verbs that without an object do not describe their subject, or nothing that an image shows.
SAYING_NOTHING = listed(
    "be have do suggest indicate imply mean seem appear feel know think show exist include involve "
    "depend make cause give help use enjoy try need want like let get go provide consider"
)
# Participles that describe the clause's subject even directly after its object.
LOOSE = listed("use suggest indicate imply give include")
# Verbs with an object that names an occasion: "have a great time playing".
SPENDING = listed("have spend enjoy take")
# What things do as well as people: in "a man in a room facing a street" the room faces it.
STANDING = listed(
    "stand sit lie hang flow shine grow contain show say display lead cover surround float "
    "fly feature depict face overlook be have include run connect separate form reflect "
    "create line fill give make provide protrude extend bear belong consist"
)
# Prepositions after which an -ing form names an activity and does not describe the subject.
NAMING = listed("for of about from to than like on")
HEDGES = listed("likely unlikely possible probable possibly certain sure able ready")
# Prepositions that a clause may follow as well: "considering the man wears a coat".
CLAUSE_TOO = listed("considering given like despite except")
EQUATING = listed("be become remain")
OWNED = listed("his her their its")


class Role(NamedTuple):
    """The role in a claim that a noun phrase shares with phrases coordinated with it."""

    subjects: tuple[NounPhrase, ...]
    relation: str
    negated: bool
    placing: bool = False


def worth_stating(phrase: NounPhrase, verbless: bool) -> bool:
    """Return whether a phrase may claim presence: it is tangible, or its sentence has no verb."""
    if phrase.pronoun or phrase.lemma in MEDIUM_NOUNS:
        return False
    return phrase.tangible or verbless


def own_place(phrase: NounPhrase, role: Role, following: Chunk | None) -> bool:
    """Return whether a coordinated phrase has its own place, not that of the phrase before it."""
    placed = following is not None and following.kind == "I" and following.text != "of"
    return placed and role.placing and phrase.determiner in ("a", "an", "another")


def presents(verb: VerbGroup, subjects: tuple[NounPhrase, ...]) -> bool:
    """Return whether the image or its viewer shows what follows: "the image shows a dog"."""
    if verb.lemma not in PRESENTING_VERBS or verb.passive or not subjects:
        return False
    return subjects[0].lemma in MEDIUM_NOUNS or subjects[0].text in VIEWERS


def sharing(last: NounPhrase, prep: Chunk, role: Role | None) -> tuple[NounPhrase, ...]:
    """Return what a preposition places: the noun before it, or what shares its role."""
    if role is None or not role.placing or prep.text == "of":
        return (last,)
    return role.subjects


_COUNTING = listed("one some many most several both all each few two three none")


def without_measures(chunks: list[Chunk]) -> list[Chunk]:
    """Return the chunks without "a group of" and similar phrases before a noun phrase."""
    out: list[Chunk] = []
    i = 0
    while i < len(chunks):
        chunk = chunks[i]
        measured = (
            isinstance(chunk, NounPhrase)
            and (chunk.measured or (chunk.pronoun and chunk.text in _COUNTING))
            and i + 2 < len(chunks)
            and chunks[i + 1].text == "of"
        )
        target = chunks[i + 2] if measured else None
        if isinstance(chunk, NounPhrase) and isinstance(target, NounPhrase) and not target.pronoun:
            target.negated = target.negated or chunk.negated
            target.start, target.first = chunk.start, chunk.first
            i += 2
            continue
        out.append(chunk)
        i += 1
    return out


_KEPT = 8
"""How many earlier subjects, and how many other mentions, a pronoun may refer to."""

_BODY_FILE = "i"  # noun.body is lexicographer file 8, "i" counted from "a"
_HE = listed("he him his himself")
_SHE = listed("she her hers herself")
_IT = listed("it its itself")
_SOME = listed("some others another both all several few many most each one two three")
_THEY = listed("they them their themselves theirs")


class Mentions:
    """The earlier noun phrases of a text, to which pronouns may refer.

    A pronoun refers to the latest subject that agrees with it, or else to the latest other mention
    that agrees. Without such a phrase it is not resolved.

    Args:
        lexicon: The lexicon, which has the nouns for persons.
    """

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self._subjects: list[NounPhrase] = []
        self._others: list[NounPhrase] = []

    def saw(self, phrase: NounPhrase, *, subject: bool) -> None:
        """Add a noun phrase to which pronouns may refer."""
        if phrase.pronoun or phrase.lemma in MEDIUM_NOUNS:
            return
        kept = self._subjects if subject else self._others
        kept.append(phrase)
        del kept[:-_KEPT]

    def named(self, pronoun: str, excluded: tuple[NounPhrase, ...] = ()) -> NounPhrase | None:
        """Return the phrase to which a pronoun refers, or None.

        Args:
            pronoun: The pronoun in lower case.
            excluded: Phrases to which it cannot refer: the subjects of the verb whose object it is.
        """
        if pronoun.endswith(("self", "selves")):
            excluded = ()
        for kept in (self._subjects, self._others):
            for phrase in reversed(kept):
                if self._agrees(phrase, pronoun) and phrase not in excluded:
                    return phrase
        return None

    def _agrees(self, phrase: NounPhrase, pronoun: str) -> bool:
        lemma = phrase.lemma
        if pronoun in _SOME:
            return phrase.plural
        if pronoun in _THEY:
            if self._lexicon.reading(lemma).file == _BODY_FILE:
                return False
            return phrase.plural or lemma in ("couple", "family", "team", "crowd", "pair")
        if phrase.plural:
            return False
        person = lemma in PERSON_WORDS or self._lexicon.reading(lemma).person
        if pronoun in _HE:
            return person and lemma not in FEMALE
        if pronoun in _SHE:
            return person and lemma not in MALE
        return pronoun in _IT and not person and phrase.tangible


DOUBTS = listed("unlikely unable doubtful improbable impossible")
"""Adjectives that negate what follows them: "is unlikely to be", "it is doubtful that"."""

_LIKELY = listed("likely unlikely able unable ready about set supposed going bound")
_SEEMING = listed("appear seem look")
_REPORTING = listed(
    "see show depict capture portray picture observe photograph illustrate find catch leave"
)


def main_verb(tags: list[str], i: int) -> tuple[int, bool, bool, bool]:
    """Return the place of the main verb (-1: none), and if it is negated, passive, infinitive."""
    main, negated, passive = -1, False, False
    infinitive = tags[i] == "T"
    k = i + 1 if infinitive else i
    aux = ""
    while k < len(tags):
        tag = tags[k]
        if tag == "F":
            negated = True
        elif tag == "R":
            if not verb_goes_on(tags, k + 1):
                break
        elif tag in "MBHO":
            main, aux = k, tag
        elif tag == "V":
            if main < 0 or aux in "MO":
                main = k
            break
        elif tag in "GE":
            if main < 0 or aux in "BH" or (aux == "M" and tag == "E"):
                passive = tag == "E" and aux == "B"
                main = k
            break
        else:
            break
        k += 1
    if infinitive and main >= 0 and tags[main] in "GE" and tags[i + 1] in "GE":
        return -1, False, False, False
    return main, negated, passive, infinitive


def verb_goes_on(tags: list[str], k: int) -> bool:
    """Return whether a verb follows at k, perhaps after adverbs and negations."""
    while k < len(tags) and tags[k] in "RF":
        k += 1
    return k < len(tags) and tags[k] in "VGEBHMO"


def joined(chunks: list[Chunk]) -> list[Chunk]:
    """Return the chunks with verb chains joined, such as "seems to be walking"."""
    out: list[Chunk] = []
    for chunk in chunks:
        if isinstance(chunk, VerbGroup) and out and chunk.form in ("infinitive", "ing"):
            before = out[-1]
            hinge = None
            if chunk.form == "infinitive" and before.text in _LIKELY and len(out) > 1:
                hinge, before = before, out[-2]
            if isinstance(before, VerbGroup) and _hands_on(before, chunk, hinge):
                chunk.form = before.form
                doubted = hinge is not None and hinge.text in DOUBTS
                chunk.negated = chunk.negated or before.negated or doubted
                chunk.first, chunk.start = before.first, before.start
                del out[-2 if hinge is not None else -1 :]
        out.append(chunk)
    return out


def _hands_on(before: VerbGroup, after: VerbGroup, hinge: Chunk | None) -> bool:
    if hinge is not None:
        return before.lemma == "be"
    if before.particle:
        return before.particle == "on" and before.lemma in ("go", "keep")
    if before.lemma in RAISING or (before.lemma == "go" and after.form == "infinitive"):
        return True
    return before.passive and before.lemma in _REPORTING


def without_seeming(chunks: list[Chunk], words: list[Word]) -> list[Chunk]:
    """Return the chunks without "what appears to be" before a noun phrase."""
    out: list[Chunk] = []
    for chunk in chunks:
        last = out[-1] if out else None
        seeming = isinstance(chunk, VerbGroup) and chunk.lemma == "be"
        what = last is not None and last.kind == "W" and last.text == "what"
        if seeming and what and words[chunk.first].verb_lemma in _SEEMING:
            out.pop()
        else:
            out.append(chunk)
    return out
