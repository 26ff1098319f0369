"""Clauses: what was read of one so far, and what its prepositional phrases describe.

Whether such a phrase describes the verb or a noun before it depends on the verb, the preposition
and the nouns. All lists were compiled by hand.
"""

from __future__ import annotations

from collections.abc import Sequence

from .lexicon import Lexicon
from .phrases import CAUSING, LOOSE, SPENDING, STANDING, TELLING, Chunk, NounPhrase, Role, VerbGroup
from .word_lists import COPULAS, listed

# The line of each word list and number in docs/explanation/rule-extractor-quality.md, "What each
# word list is for", says how many texts have other claims without it.

# Prepositions of motion, exchange and time, which describe what the verb says.
_VERBAL = listed(
    "to into onto through toward towards along across past during throughout about for at via "
    "from without by"
)
# Prepositions of place, which describe the verb if it is an activity at a place.
_PLACING = listed("in|on|near|inside|outside|beside|under|behind|around|next to|in front of", "|")
# "Eats a cake in a park": people do these somewhere, so that the place is the activity's.
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
_GOALS = listed("into onto to toward towards through")
"""Prepositions of where a motion ends, also after where it starts: "from the pot into a cup"."""
_SHELTERING = listed("under beneath underneath")
"""Prepositions of a place that the subject shares: "sleeps next to a man under a tree"."""
_TAKEN_ALONG = listed(
    "helmet umbrella shirt shoe sock jacket coat hat cap glove mask leash blanket glasses "
    "sunglasses harness vest clothes clothing uniform gear equipment protection tool saddle"
)
"""Nouns that after "without" the subject lacks: "sleeps in a bed without a blanket"."""
_WAYS = listed("motion movement way manner fashion pace speed rhythm style")
"""Nouns for how something is done."""
# Determiners of a tool or a part of the body that is known: "crushes it with his foot".
_KNOWN = listed("the his her their its")
# "With her dog" says whose it is, so that the subject has it along.
_OWN = listed("his her their its")
# "With a smile" tells how the subject acts, and nothing of the place before it.
_MANNERS = listed(
    "expression smile smirk look focus interest intensity concentration enthusiasm confidence ease "
    "care force precision grin frown joy"
)
# "A man on a road with a dog": a road has no dog, whereas a room may.
_OPEN_PLACES = listed(
    "road street sidewalk beach path field slope hill park grass court wave water river trail snow "
    "mountain ocean lake shore ground lawn crosswalk"
)
_PORTABLE = "gf"
"""Lexicographer files of artefacts and animals."""
_LIVING = "df"
"""Lexicographer files of the most general nouns, such as "person", and of animals."""
# A pronoun takes no preposition of its own: "holds it with a hand".
_ANAPHORS = listed(
    "it|them|him|her|me|us|himself|herself|itself|themselves|each other|one another", "|"
)
# A time is when something happens, and no place of a noun.
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
        # No noun stands between the verb and its preposition.
        if last is None or last.first < verb.first:
            return True
        # "A cup of tea": "of" belongs to the noun before it.
        if prep.text == "of":
            return False
        if phrase.lemma in _TIMES or last.text in _ANAPHORS:
            return True
        if phrase.lemma in _WAYS:
            return True
        if not objects or objects[-1] is not last:
            if prep.text in _SHELTERING:
                return True
            if prep.text == "without":
                return phrase.lemma in _TAKEN_ALONG and self.acts(subjects[0])
            if prep.text in _GOALS:
                return last.lemma not in _NOUN_FRAMES.get(prep.text, ())
            return prep.text == "with" and self._accompanies(phrase, last)
        # Abstract subjects do nothing with or at something.
        acts = verb.lemma not in COPULAS and (subjects[0].tangible or subjects[0].pronoun)
        if not acts or last.lemma in _NOUN_FRAMES.get(prep.text, ()):
            return False
        if prep.text == "with":
            return self._tool_or_company(verb, phrase, last)
        if prep.text in _VERBAL:
            # "Has a view from the window": with a state, "from" belongs to the noun.
            return verb.lemma not in _STATES or prep.text in ("for", "to", "about")
        if last.determiner in _OWN and prep.text in _PLACING and verb.lemma not in _STATES:
            return True
        # "Cooks a steak in a pan" places the steak, "sees a man in a park" the man.
        if phrase.lemma in _CONTAINERS or self._person(last):
            return False
        return prep.text in _PLACING and verb.lemma in _ACTIVITIES

    def _tool_or_company(self, verb: VerbGroup, phrase: NounPhrase, last: NounPhrase) -> bool:
        if verb.lemma in _STATES:
            return False
        # "Plays a game with a friend" has company; "sees a man with a dog" has not.
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
        # Personal pronouns stand for those who act.
        if phrase.pronoun:
            return phrase.text not in ("it", "this", "that")
        living = self._lexicon.reading(phrase.lemma).file in _LIVING
        return living or self._lexicon.is_person(phrase.lemma)

    def described(
        self, before: NounPhrase, verb: VerbGroup, role: Role | None
    ) -> tuple[NounPhrase, ...]:
        """Return what a participle after a noun describes: the noun, or who acts before it.

        In "a girl on a bicycle eating an apple" the girl eats.
        """
        # Only a place beside another noun leaves two that may act.
        if role is None or not role.placing or verb.form != "ing" or verb.lemma in STANDING:
            return (before,)
        acting = tuple(subject for subject in role.subjects if self.acts(subject))
        # Both could act in "a girl beside a boy eating", and the nearer is meant.
        return acting if acting and not self.acts(before) else (before,)

    def _person(self, phrase: NounPhrase) -> bool:
        if phrase.pronoun:
            return phrase.text in ("him", "her", "them", "someone", "each other")
        return self._lexicon.is_person(phrase.lemma)

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
        self._lexicon = lexicon
        self._attachment = Attachment(lexicon)
        self._reset()

    def _reset(self) -> None:
        self._phrases: list[NounPhrase] = []
        # The clause's subjects, of which its further verbs may tell as well.
        self._subjects: tuple[NounPhrase, ...] = ()
        self._verb: VerbGroup | None = None
        self._verb_subjects: tuple[NounPhrase, ...] = ()
        # Whether a claim has the verb; without one it becomes an attribute: "is running".
        self._verb_said = True
        self._objects: list[NounPhrase] = []
        self._last: NounPhrase | None = None
        # Waits for the noun phrase after it.
        self._prep: Chunk | None = None
        # What the last phrase was to its subjects, which phrases that are linked to it share.
        self._role: Role | None = None
        # Places of a subject that is still to come: "on the desk, a lamp".
        self._fronted: list[tuple[str, NounPhrase]] = []
        # What a relative pronoun stands for, until its verb.
        self._relative: NounPhrase | None = None
        self._existential = False
        # After a coordinator or a comma; in a preposition after "and"; after ", with".
        self._linked = self._parallel = self._absolute = False
        # Whether the subjects have their finite verb, so that the next one needs another subject.
        self._had_main_verb = False
        # An adjective after a copula, which a preposition may complete: "is full of".
        self._predicate: Chunk | None = None
        # In a phrase about evidence, about examples, or about guessed examples.
        self._aside = self._examples = False
        # The subjects around a relative clause that has a subject of its own.
        self._outer: tuple[NounPhrase, ...] = ()
        # What such a clause describes, if it is its verb's object, and the verb's preposition.
        self._gap: NounPhrase | None = None
        self._gap_prep = ""
        # After "it is unlikely", until the verb that this denies.
        self._denied = False
        # After "but", where the verb's negation has ended: "is not red but blue".
        self._contrasted = False
        self._verb_ahead: VerbGroup | None = None

    def _denies(self, verb: VerbGroup) -> bool:
        """Return whether a verb denies what comes next."""
        return verb.negated and not self._contrasted

    def _tells_of_clause(self, chunk: Chunk, before: Chunk | None, following: Chunk | None) -> bool:
        """Return whether ", which" stands for the whole clause before it, which has no name."""
        clause = chunk.text == "which" and before is not None and before.kind == ","
        if not clause or not isinstance(following, VerbGroup):
            return False
        if following.lemma not in TELLING:
            return False
        self._relative = None
        self._subjects = ()
        return True

    def _opens_clause(self, following: Chunk | None) -> bool:
        """Return whether this phrase is the subject of a finite verb that follows.

        In "a woman wearing sunglasses holds" and "the man who has a hat holds" the subject is the
        phrase before the participle or the relative clause instead.
        """
        # "And a boy in shorts throws": the verb after his places decides.
        if self._linked and following is not None and following.kind == "I":
            following = self._verb_ahead
        if not isinstance(following, VerbGroup) or following.form != "finite":
            return False
        # The subjects still wait for their verb: another noun before it is not a new subject.
        owing = not self._had_main_verb and bool(self._subjects)
        if owing and self._linked and self._role is not None:
            # "A man in a shirt and trousers is": the verb agrees with the man alone.
            alone = len(self._subjects) == 1 and not self._subjects[0].plural
            return not (alone and following.singular)
        return self._linked or self._verb is None or not owing

    def _excluded(self, following: Chunk | None) -> tuple[NounPhrase, ...]:
        """Return what a pronoun cannot refer to: subjects and objects of the verb before it."""
        # The subject of a new clause may be anyone named before.
        if self._verb is None or self._absolute or self._opens_clause(following):
            return ()
        whole = (*self._verb_subjects, *self._objects)
        if self._prep is not None and self._last is not None:
            accompanied = self._role is not None and self._role.relation.endswith("with")
            whole = (self._last,) if accompanied else (*whole, self._last)  # "with coins in it"
        return tuple(each if each.named is None else each.named for each in whole)

    def _subjects_of(self, verb: VerbGroup, before: Chunk | None) -> tuple[NounPhrase, ...]:
        if self._relative is not None:
            return (self._relative,)
        if verb.form in ("ing", "participle"):
            # "The presence of a man eating": the man eats.
            if isinstance(before, NounPhrase) and before.complement is not None:
                return (before.complement,)
            if isinstance(before, NounPhrase) and not before.pronoun and verb.lemma not in LOOSE:
                # "A man and a woman holding hands" describes both.
                joined = self._subjects and before is self._subjects[-1]
                if joined:
                    return self._subjects
                said = self._verb_subjects if self._spends(before) else ()
                return said or self._attachment.described(before, verb, self._role)
            if isinstance(before, VerbGroup):
                return self._verb_subjects
            if before is not None and before.kind == "," and verb.lemma in TELLING:
                return ()  # the clause suggests it, and not its subject
            if before is None or self._verb is None:
                return self._subjects
            # "sits reading, and smiling": verbs of one form have the same subjects.
            linked = before.kind == "C" or self._verb.form == verb.form
            return self._verb_subjects if linked else self._subjects
        if verb.form == "infinitive":
            caused = self._objects and self._verb is not None and self._verb.lemma in CAUSING
            return (self._objects[-1],) if caused else self._verb_subjects or self._subjects
        # "The cup that he holds is red": the outer subject gets its verb.
        if self._outer and self._verb is not None and before is not None and before.kind != "C":
            self._subjects, self._outer = self._outer, ()
            return self._subjects
        if before is not None and before.kind == "C" and self._verb is not None:
            # After a participle, "and" goes back to the clause's own subject.
            finite = self._verb.form == "finite"
            return self._verb_subjects or self._subjects if finite else self._subjects
        return self._subjects

    @staticmethod
    def _meant(subjects: tuple[NounPhrase, ...], nouns: frozenset[str]) -> tuple[NounPhrase, ...]:
        """Return subjects with the complement of some abstract nouns in place of these."""
        return tuple(
            each.complement if each.complement is not None and each.lemma in nouns else each
            for each in subjects
        )

    def _spends(self, before: NounPhrase) -> bool:
        """Return whether a noun is the occasion of an activity: "have a great time playing"."""
        verb = self._verb
        spent = verb is not None and verb.lemma in SPENDING and not before.tangible
        return spent and bool(self._objects) and before is self._objects[-1]
