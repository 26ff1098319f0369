"""What the rules build claims from: clauses, attachment of phrases, and claims without repeats.

A prepositional phrase after an object describes the verb's subject or a noun before it. The choice
depends on the verb, the preposition and the nouns. All lists were compiled by hand.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from hallujudge.metrics.framework.claims import Modality

from ..extractor_interface import ExtractedTriplet, Span
from .lexicon import Lexicon
from .phrases import CAUSING, LOOSE, SPENDING, STANDING, Chunk, NounPhrase, Role, VerbGroup
from .word_lists import COPULAS, MEDIUM_NOUNS, PERSON_WORDS, listed

_MOST_TENTATIVE = (Modality.CONDITIONAL, Modality.HEDGED)
_VOWELS = frozenset("aeiou")


class Claims:
    """The claims of one text."""

    def __init__(self) -> None:
        self.found: list[ExtractedTriplet] = []
        self._seen: set[tuple[str, str, str, int, int]] = set()
        self._placed: set[int] = set()
        self._starts: list[int] = []
        self._modalities: list[Modality] = []

    def next_sentence(self, chunks: Sequence[Chunk]) -> None:
        """Start a sentence, in which no noun phrase belongs to a claim yet."""
        self._placed = set()
        self._starts = [chunk.start for chunk in chunks]
        self._modalities = [chunk.modality for chunk in chunks]

    def relate(self, subject: NounPhrase, relation: str, target: NounPhrase, negated: bool) -> None:
        """Add a relation, unless the object is an unresolved pronoun or the image itself."""
        if (target.pronoun and target.named is None) or _is_medium(target, relation):
            return
        negated = negated or subject.negated or target.negated
        first, second = _name(subject), _name(target)
        if negated and relation == "of":
            # "no signs of rain" denies the signs, not the relation.
            self.state(subject)
            self._placed.update((id(subject), id(target)))
            return
        self._placed.update((id(subject), id(target)))
        if first != second:
            self._add(first, relation, second, _span(subject), _span(target), negated)

    def attribute(
        self, subject: NounPhrase, text: str, start: int, end: int, negated: bool
    ) -> None:
        """Add an attribute."""
        self._placed.add(id(subject))
        negated = negated or subject.negated
        self._add(_name(subject), "is", text, _span(subject), Span(start, end), negated)

    def own(self, owner: NounPhrase, phrase: NounPhrase) -> None:
        """Add the possession of "his hat"; the place of the claim's subject is the pronoun's."""
        self._placed.add(id(phrase))
        place = Span(phrase.start, phrase.start + len(phrase.determiner))
        self._add(owner.text, "has", phrase.text, place, _span(phrase), False)

    def state(self, phrase: NounPhrase) -> None:
        """Add that an object is present, unless it belongs to another claim of the sentence."""
        if id(phrase) not in self._placed:
            span = _span(phrase)
            self._add(phrase.text, "is", "present", span, span, phrase.negated)

    def _add(
        self,
        subject: str,
        relation: str,
        target: str,
        subject_span: Span,
        object_span: Span,
        negated: bool,
    ) -> None:
        if negated:
            relation = f"{relation} not" if relation in ("is", "has") else f"not {relation}"
        key = (subject.lower(), relation, target.lower(), subject_span.start, object_span.start)
        if key in self._seen:
            return
        self._seen.add(key)
        self.found.append(
            ExtractedTriplet(
                subject=subject,
                relation=relation,
                object=target,
                start=min(subject_span.start, object_span.start),
                end=max(subject_span.end, object_span.end),
                subject_span=subject_span,
                object_span=object_span,
                negated=negated,
                modality=self._modality(subject_span, object_span),
            )
        )

    def _modality(self, *places: Span) -> Modality:
        """Return how the sentence puts a claim: as its most tentative part."""
        found = {self._modality_at(place.start) for place in places}
        return next((each for each in _MOST_TENTATIVE if each in found), Modality.STATED)

    def _modality_at(self, place: int) -> Modality:
        index = bisect_right(self._starts, place) - 1
        return self._modalities[index] if index >= 0 else Modality.STATED


def said(verb: VerbGroup) -> str:
    """Return a verb as written, with its particle."""
    return f"{verb.text} {verb.particle}" if verb.particle else verb.text


def placed_relation(verb: VerbGroup, prep: str) -> str:
    """Return a verb and its preposition; the preposition alone for "be"."""
    return prep if verb.lemma == "be" else f"{said(verb)} {prep}"


def ing_form(lemma: str) -> str:
    """Return the -ing form of a verb."""
    if lemma.endswith("ie"):
        return f"{lemma[:-2]}ying"
    if lemma.endswith("e") and not lemma.endswith(("ee", "ye", "oe")):
        return f"{lemma[:-1]}ing"
    short = len(lemma) in (3, 4) and lemma[-1] not in _VOWELS and lemma[-1] not in "wxy"
    if short and lemma[-2] in _VOWELS and lemma[-3] not in _VOWELS:
        return f"{lemma}{lemma[-1]}ing"
    return f"{lemma}ing"


def _is_medium(target: NounPhrase, relation: str) -> bool:
    """Return whether the target is the image itself: everything is "in the image"."""
    return (
        target.lemma in MEDIUM_NOUNS
        and target.determiner in ("the", "this", "these")
        and relation.rsplit(" ", 1)[-1] in ("in", "of", "from", "throughout", "within", "across")
    )


def _name(phrase: NounPhrase) -> str:
    return phrase.text if phrase.named is None else phrase.named.text


def _span(phrase: NounPhrase) -> Span:
    return Span(phrase.name_start, phrase.end)


# Prepositions of motion, exchange and time, which describe what the verb says.
_VERBAL = listed(
    "to into onto through toward towards along across past during throughout about for at via "
    "from without by"
)
# Prepositions of place, which describe the verb if it is an activity at a place.
_PLACING = listed("in|on|near|inside|outside|beside|under|behind|around|next to|in front of", "|")
_ACTIVITIES = listed(
    "read eat drink play watch ride drive cook prepare enjoy chase feed use practice perform "
    "take throw kick hit catch sell buy celebrate share cut chop slice wash clean brush write "
    "type paint repair fix build walk push pull unload load serve discuss attend spend"
)
# Verbs whose object is where the phrase is: in "sees a dog on the grass" the dog is on the grass.
_STATES = listed(
    "have hold see show include feature contain wear know own notice spot find need want keep "
    "depict capture display observe reveal form make create provide offer give put place set "
    "position surround represent resemble"
)
# Verbs that are done with a tool or with company.
_TOOL_VERBS = listed(
    "cut slice chop eat hit strike clean wash brush paint draw write dig stir feed fill cover "
    "decorate spray wipe sweep open close tie lock fix repair build catch touch pierce mix spread "
    "attack fight poke press scoop scrape mark measure grab lift pick move push pull"
)
# Nouns that take the preposition themselves: "the road to the town", "a view from the window".
_NOUN_FRAMES = {
    "to": listed(
        "road path entrance door way access key stairs staircase bridge damage attention approach "
        "answer addition reference proximity similarity resemblance contrast guide trip ladder"
    ),
    "for": listed(
        "reason space room need place area bag container food holder stand rack station sign "
        "equipment tool preparation support desire potential opportunity demand respect love bin "
        "box case spot rest setting environment purpose advertisement gear responsibility"
    ),
    "about": listed(
        "book story information question concern sign idea message discussion video film article"
    ),
    "from": listed("view water light smoke steam food people person picture image scene product"),
    "at": listed("look glance person people man woman table seat sign"),
    "into": listed("entrance door hole insight glimpse view"),
    "through": listed("path road hole view way trip"),
    "along": listed("path trees people buildings cars line"),
    "across": listed("bridge view"),
    "without": listed("man woman person people child boy girl shirt plate table room building car"),
    "by": listed("painting book work photo picture photograph song design"),
    "toward": frozenset({"attitude", "path", "step"}),
    "towards": frozenset({"attitude", "path", "step"}),
}
# Things that hold the object: in "cooks a steak in a pan" the steak is in the pan.
_CONTAINERS = listed(
    "pan wok pot bowl plate oven skillet tray cup glass basket box bag bottle jar bucket container"
)
# Determiners of a tool or a part of the body that is known: "crushes it with his foot".
_KNOWN = listed("the his her their its")
_OWN = listed("his her their its")
_MANNERS = listed(
    "expression smile smirk look focus interest intensity concentration enthusiasm confidence ease "
    "care force precision grin frown joy"
)
_OPEN_PLACES = listed(
    "road street sidewalk beach path field slope hill park grass court wave water river trail snow "
    "mountain ocean lake shore ground lawn crosswalk"
)
_PORTABLE = "gf"
"""Lexicographer files of artefacts and animals."""
_LIVING = "df"
"""Lexicographer files of the most general nouns, such as "person", and of animals."""
_ANAPHORS = listed(
    "it|them|him|her|me|us|himself|herself|itself|themselves|each other|one another", "|"
)
_TIMES = listed(
    "night day morning evening afternoon dusk dawn sunset sunrise daytime nighttime noon midday "
    "winter summer spring autumn weekend daylight"
)
# Nouns for regions of the air or the scene, in which nothing else is placed.
_REGIONS = listed("sky air distance background foreground middle center centre")


class Attachment:
    """Decides whether a preposition belongs to the verb.

    Args:
        lexicon: The lexicon, which has the nouns for persons.
    """

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon

    def to_verb(
        self,
        prep: Chunk,
        phrase: NounPhrase,
        verb: VerbGroup,
        subjects: Sequence[NounPhrase],
        last: NounPhrase | None,
        objects: Sequence[NounPhrase],
    ) -> bool:
        """Return whether a preposition describes the verb and not the noun before it.

        Args:
            prep: The preposition.
            phrase: The noun phrase after it.
            verb: The verb of the clause.
            subjects: The verb's subjects.
            last: The noun phrase before the preposition.
            objects: The verb's objects.
        """
        if last is None or last.first < verb.first:
            return True
        if prep.text == "of":
            return False
        if phrase.lemma in _TIMES or last.text in _ANAPHORS:
            return True
        if not objects or objects[-1] is not last:
            return prep.text == "with" and self._accompanies(phrase, last)
        acts = verb.lemma not in COPULAS and (subjects[0].tangible or subjects[0].pronoun)
        if not acts or last.lemma in _NOUN_FRAMES.get(prep.text, ()):
            return False
        if prep.text == "with":
            return self._tool_or_company(verb, phrase, last)
        if prep.text in _VERBAL:
            return verb.lemma not in _STATES or prep.text in ("for", "to", "about")
        if phrase.lemma in _CONTAINERS or self._person(last):
            return False
        return prep.text in _PLACING and verb.lemma in _ACTIVITIES

    def _tool_or_company(self, verb: VerbGroup, phrase: NounPhrase, last: NounPhrase) -> bool:
        if verb.lemma in _STATES:
            return False
        if self._person(phrase):
            return not self._person(last)
        known = phrase.determiner in _KNOWN or not phrase.tangible
        return known or last.pronoun or verb.lemma in _TOOL_VERBS

    def _accompanies(self, phrase: NounPhrase, place: NounPhrase) -> bool:
        """Return whether "with" after a place names what the subject has with it there."""
        if phrase.determiner in _OWN or phrase.lemma in _MANNERS:
            return True
        reading = self._lexicon.reading(phrase.lemma)
        portable = phrase.tangible and (reading.person or reading.file in _PORTABLE)
        return portable and place.lemma in _OPEN_PLACES

    def acts(self, phrase: NounPhrase) -> bool:
        """Return whether a noun phrase is a person or an animal."""
        if phrase.pronoun:
            return phrase.text not in ("it", "this", "that")
        reading = self._lexicon.reading(phrase.lemma)
        return reading.person or reading.file in _LIVING or phrase.lemma in PERSON_WORDS

    def described(
        self, before: NounPhrase, verb: VerbGroup, role: Role | None
    ) -> tuple[NounPhrase, ...]:
        """Return what a participle after a noun describes: the noun, or who acts before it.

        In "a girl on a bicycle eating an apple" the girl eats.
        """
        if role is None or not role.placing or verb.form != "ing" or verb.lemma in STANDING:
            return (before,)
        acting = tuple(subject for subject in role.subjects if self.acts(subject))
        return acting if acting and not self.acts(before) else (before,)

    def _person(self, phrase: NounPhrase) -> bool:
        if phrase.pronoun:
            return phrase.text in ("him", "her", "them", "someone", "each other")
        return phrase.lemma in PERSON_WORDS or self._lexicon.reading(phrase.lemma).person

    @staticmethod
    def is_region(phrase: NounPhrase) -> bool:
        """Return whether nothing else is placed in a phrase, such as "the sky"."""
        return phrase.lemma in _REGIONS


class Clause:
    """What was read of a sentence so far, from left to right.

    Args:
        lexicon: The lexicon, which has the nouns for persons.
    """

    def __init__(self, lexicon: Lexicon) -> None:
        self._attachment = Attachment(lexicon)
        self._reset()

    def _reset(self) -> None:
        self._phrases: list[NounPhrase] = []
        self._subjects: tuple[NounPhrase, ...] = ()
        self._verb: VerbGroup | None = None
        self._verb_subjects: tuple[NounPhrase, ...] = ()
        self._verb_said = True
        self._objects: list[NounPhrase] = []
        self._last: NounPhrase | None = None
        self._prep: Chunk | None = None
        self._role: Role | None = None
        self._fronted: list[tuple[Chunk, NounPhrase]] = []
        self._relative: NounPhrase | None = None
        self._existential = False
        self._linked = self._parallel = self._absolute = False
        self._had_main_verb = False
        self._predicate: Chunk | None = None
        self._aside = False
        self._outer: tuple[NounPhrase, ...] = ()
        self._gap: NounPhrase | None = None
        self._denied = False

    def _opens_clause(self, following: Chunk | None) -> bool:
        """Return whether this phrase is the subject of a finite verb that follows.

        In "a woman wearing sunglasses holds" and "the man who has a hat holds" the subject is the
        phrase before the participle or the relative clause instead.
        """
        if not isinstance(following, VerbGroup) or following.form != "finite":
            return False
        owing = not self._had_main_verb and bool(self._subjects)
        if owing and self._linked and self._role is not None:
            # "A man in a shirt and trousers is": the verb agrees with the man alone.
            alone = len(self._subjects) == 1 and not self._subjects[0].plural
            return not (alone and following.singular)
        return self._linked or self._verb is None or not owing

    def _excluded(self, following: Chunk | None) -> tuple[NounPhrase, ...]:
        """Return what a pronoun cannot refer to: subjects and objects of the verb before it."""
        if self._verb is None or self._absolute or self._opens_clause(following):
            return ()
        whole = (*self._verb_subjects, *self._objects)
        return tuple(each if each.named is None else each.named for each in whole)

    def _subjects_of(self, verb: VerbGroup, before: Chunk | None) -> tuple[NounPhrase, ...]:
        if self._relative is not None:
            return (self._relative,)
        if verb.form in ("ing", "participle"):
            if isinstance(before, NounPhrase) and not before.pronoun and verb.lemma not in LOOSE:
                joined = self._subjects and before is self._subjects[-1]
                if joined:
                    return self._subjects
                said = self._verb_subjects if self._spends(before) else ()
                return said or self._attachment.described(before, verb, self._role)
            if isinstance(before, VerbGroup):
                return self._verb_subjects
            if before is None or self._verb is None:
                return self._subjects
            linked = before.kind == "C" or self._verb.form == verb.form
            return self._verb_subjects if linked else self._subjects
        if verb.form == "infinitive":
            caused = self._objects and self._verb is not None and self._verb.lemma in CAUSING
            return (self._objects[-1],) if caused else self._verb_subjects or self._subjects
        if self._outer and self._verb is not None and before is not None and before.kind != "C":
            self._subjects, self._outer = self._outer, ()
            return self._subjects
        if before is not None and before.kind == "C" and self._verb is not None:
            finite = self._verb.form == "finite"
            return self._verb_subjects or self._subjects if finite else self._subjects
        return self._subjects

    def _spends(self, before: NounPhrase) -> bool:
        """Return whether a noun is the occasion of an activity: "have a great time playing"."""
        verb = self._verb
        spent = verb is not None and verb.lemma in SPENDING and not before.tangible
        return spent and bool(self._objects) and before is self._objects[-1]
