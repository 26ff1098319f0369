"""Rules that extract claims from chunks, in one pass over each sentence from left to right.

The rules, each with an example:

* attribute: "a red bus" and "the bus is red" give (bus, is, red); participles are attributes too.
* preposition: after a noun, "a cup on the table" gives (cup, on, table); after a verb, "lies on the
  couch" gives (dog, lies on, couch); after "be" the preposition alone.
* verb: "holds up a sign" gives (man, holds up, sign); without an object, (dog, is, running).
* passive: the participle and its preposition, (pizza, eaten by, man).
* possession: "the man's hat" and "his hat" (if the pronoun is resolved) give (man, has, hat).
* coordination: every coordinated phrase gets the claim.
* relative clauses and participles describe the noun before them.
* existence: "there is a dog", "the image shows a dog", and a tangible object in no other claim give
  (dog, is, present).
* modality: "might be", "possibly" and "if" mark the claims of their clause; questions have none.
* negation: the relation of "is not wearing" and "no people" contains ``not``.
"""

from __future__ import annotations

from hallujudge.metrics.framework.claims import Modality

from .. import ExtractedTriplet
from .claim_building import (
    Claims,
    Mentions,
    deny_object,
    equates,
    ing_form,
    is_empty_it,
    is_medium,
    placed_relation,
    said,
    tells_weather,
)
from .clauses import Clause
from .lexicon import Lexicon
from .modality import ATTEMPTING, EXAMPLES, REPLACING, asks
from .phrases import (
    CHANGING,
    CLAUSE_TOO,
    DOUBTS,
    EQUATING,
    GIVING,
    HEDGES,
    NAMING,
    OWNED,
    PERSONAL,
    PURPOSES,
    SAYING_NOTHING,
    SHARED_PLACES,
    STANCES,
    Chunk,
    NounPhrase,
    Role,
    VerbGroup,
    ends_absence,
    own_place,
    presents,
    sharing,
    verb_after_places,
    with_alternatives,
    with_complements,
    without_measures,
    worth_stating,
)
from .word_lists import COPULAS, EVIDENCE_PREPOSITIONS, PRESENTING_VERBS


class TripletRules(Clause):
    """Collects the claims of a text, sentence by sentence.

    Args:
        lexicon: The lexicon, which has the nouns for persons.
    """

    def __init__(self, lexicon: Lexicon) -> None:
        super().__init__(lexicon)
        self._mentions = Mentions(lexicon)
        self._claims = Claims()

    @property
    def found(self) -> list[ExtractedTriplet]:
        """The claims so far, in the order of the text."""
        # A clause's claims are added when it ends, and the readers' order is that of the text.
        return sorted(self._claims.found, key=lambda claim: (claim.start, claim.end))

    def mention(self, chunks: list[Chunk]) -> None:
        """Process a sentence of the question, which claims nothing."""
        # As in an answer, so that "it" finds the same names.
        chunks = with_complements(without_measures(chunks))
        for i, chunk in enumerate(chunks):
            if isinstance(chunk, NounPhrase):
                before = chunks[i - 1] if i else None
                subject = before is None or before.kind not in "INC,"
                self._mentions.saw(chunk, subject=subject)

    def sentence(self, chunks: list[Chunk]) -> None:
        """Process one sentence."""
        # Nothing is claimed by a question in the answer; the item's own is read by `mention`.
        if asks(chunks):
            return
        self._reset()
        self._claims.next_sentence(chunks)
        # Measures go first, since alternatives and complements are joined by what they measure.
        chunks = with_complements(with_alternatives(without_measures(chunks)))
        for i, chunk in enumerate(chunks):
            following = chunks[i + 1] if i + 1 < len(chunks) else None
            before = chunks[i - 1] if i else None
            if isinstance(chunk, NounPhrase):
                self._verb_ahead = verb_after_places(chunks, i)
                if chunk.pronoun:
                    self._resolve(chunk, chunks, i)
                self._noun_phrase(chunk, following)
            elif isinstance(chunk, VerbGroup):
                self._verb_group(chunk, before, following)
            else:
                self._link(chunk, before, following)
        # The last verb of a sentence has no following word that would end it.
        self._end_verb()
        verbless = not any(isinstance(chunk, VerbGroup) for chunk in chunks)
        # Last, because only what no other claim has is said to be present.
        for phrase in self._phrases:
            if worth_stating(phrase, verbless):
                self._claims.state(phrase)

    # Links.

    def _link(self, chunk: Chunk, before: Chunk | None, following: Chunk | None) -> None:
        kind = chunk.kind
        if chunk.text == "like" and isinstance(before, VerbGroup) and before.lemma in COPULAS:
            # "Looks like a cat" relates by "looks like".
            before.particle = before.particle or "like"
        elif kind == "I" and chunk.text == "with" and before is not None and before.kind == ",":
            self._absolute = True
            self._prep = None
            self._linked = False
        elif kind == "I":
            self._prep = chunk
            # "A cat on the desk and near the lamp" has two places.
            self._parallel = self._linked and before is not None and before.kind == "C"
            self._linked = False
        elif kind == "A":
            self._adjective(chunk, before, following)
        elif kind in "C,":
            self._linked = True
            self._prep = None
            if chunk.text == "but":
                self._contrasted = True
                self._role = None if self._role is None else self._role._replace(negated=False)
        elif kind == "W":
            # "It, which": what "it" stands for is described.
            last = self._last if self._last is None else self._last.named or self._last
            self._relative = None if self._tells_of_clause(chunk, before, following) else last
            # "The room where he sits": he sits at it.
            self._gap_prep = "at" if chunk.text == "where" else ""
            if self._prep is not None and self._prep is before:
                self._gap_prep = self._prep.text
            self._prep = None
        elif kind == "X":
            self._end_verb()
            self._verb = self._role = None
            self._existential, self._linked = True, False
        else:
            self._end_verb()
            self._verb = None
            self._prep = None
            self._role = None
            self._existential = self._linked = False

    def _adjective(self, chunk: Chunk, before: Chunk | None, following: Chunk | None) -> None:
        if chunk.text in HEDGES or chunk.text in DOUBTS:
            # "Is unlikely to rain" denies the rain; the adjective says nothing of its subject.
            self._denied = chunk.text in DOUBTS
            return
        verb = self._verb
        describes = verb is not None and (
            verb.lemma in COPULAS or (before is verb and verb.lemma in STANCES)
        )
        if verb is not None and describes and not self._objects:
            completed = before is not verb or verb.lemma in COPULAS
            completed = completed and self._is_completed(chunk, following)
            for subject in () if completed else self._meant(self._verb_subjects, PERSONAL):
                negated = self._denies(verb) or chunk.negated
                self._claims.attribute(subject, chunk.text, chunk.start, chunk.end, negated)
            # "Stands open" still says that it stands.
            self._verb_said = self._verb_said or verb.lemma in COPULAS
            self._predicate = chunk if verb.lemma in COPULAS else None
        elif before is not None and before is self._last and not self._last.pronoun:
            self._claims.attribute(self._last, chunk.text, chunk.start, chunk.end, False)

    def _is_completed(self, adjective: Chunk, following: Chunk | None) -> bool:
        """Return whether what follows completes an adjective: "suitable for cycling"."""
        if following is None or self._lexicon.reading(adjective.text).visible:
            return False
        if isinstance(following, VerbGroup):
            return following.form == "infinitive"
        return following.kind == "I" and following.text not in EVIDENCE_PREPOSITIONS

    # Noun phrases.

    def _resolve(self, pronoun: NounPhrase, chunks: list[Chunk], i: int) -> None:
        """Set the phrase that a pronoun stands for, if there is one."""
        following = chunks[i + 1] if i + 1 < len(chunks) else None
        if pronoun.complement is not None and self._subjects:
            # "That of Oslo" after "the bar for Lisbon" is the bar of Oslo.
            noun = self._subjects[0].text.partition(" of ")[0]
            pronoun.text = f"{noun} of {pronoun.complement.text}"
            pronoun.pronoun = False
        elif pronoun.text.endswith(("self", "selves")) and self._verb_subjects:
            whole = self._verb_subjects[0]
            # "He ... himself": both stand for the noun that "he" stands for.
            pronoun.named = whole.named if whole.pronoun else whole
        elif pronoun.text != "it" or not (is_empty_it(chunks, i) or tells_weather(chunks, i)):
            pronoun.named = self._mentions.named(pronoun.text, self._excluded(following))
            if pronoun.named is not None and equates(chunks, i, pronoun.named):
                pronoun.named = None

    def _noun_phrase(self, phrase: NounPhrase, following: Chunk | None) -> None:
        self._phrases.append(phrase)
        if phrase.possessor is not None:
            self._mentions.saw(phrase.possessor, subject=False)
            self._phrases.append(phrase.possessor)
            self._claims.relate(phrase.possessor, "has", phrase, False)
        # "The man whose hat is red": the man has the hat.
        elif phrase.determiner == "whose":
            if self._last is not None and not self._last.pronoun:
                self._claims.own(self._last, phrase)
            self._end_verb()
            self._outer, self._verb, self._linked = self._subjects, None, False
        elif phrase.determiner in OWNED:
            self._owned(phrase)
        opens_clause = self._opens_clause(following)
        if self._relative is not None and self._prep is None and self._verb_ahead is not None:
            self._nested()
            opens_clause = True
        if self._absolute:
            self._with(phrase, following)
        elif self._prep is not None and not (opens_clause and self._prep.text in CLAUSE_TOO):
            self._after_preposition(phrase, self._prep)
        elif self._linked and self._aside and not opens_clause and not phrase.pronoun:
            self._pass_over(phrase)  # another one: "given the coats and the snow"
        elif self._linked and self._role is not None and own_place(phrase, self._role, following):
            self._role = None  # "a cup on the left and a bowl near the sink"
            if isinstance(following, VerbGroup):
                self._subject(phrase)
        elif self._linked and self._role is not None and not opens_clause:
            role = self._role  # "holds a cup and a fork"
            deny_object(phrase, role.subjects, role.negated)
            for subject in role.subjects:
                self._claims.relate(subject, role.relation, phrase, role.negated)
            if self._verb is not None:
                self._objects.append(phrase)
        elif self._existential and self._verb is not None and not opens_clause:
            self._exists(phrase)  # "there is a dog"
        elif self._verb is not None and not opens_clause and not self._linked:
            self._object(phrase, following)
        else:
            self._subject(phrase)
        self._claims.attributes(phrase)
        if phrase.complement is not None:
            self._complement(phrase.complement)
        self._last = phrase
        self._prep = None
        self._linked = False

    def _complement(self, phrase: NounPhrase) -> None:
        """Add what the phrase after "of" claims by itself: its owner and its attributes."""
        self._phrases.append(phrase)
        self._mentions.saw(phrase, subject=False)
        if phrase.possessor is not None:
            self._claims.relate(phrase.possessor, "has", phrase, False)
        self._claims.attributes(phrase)

    def _with(self, phrase: NounPhrase, following: Chunk | None) -> None:
        """Begin a clause without a finite verb: "the men play, with a dog watching them"."""
        # ", with a dog" and no verb: the subject has it with it.
        if not isinstance(following, VerbGroup) and self._verb is not None:
            for subject in self._verb_subjects:
                self._claims.relate(subject, "with", phrase, phrase.negated)
        self._end_verb()
        self._absolute = self._existential = False
        self._verb = self._role = None
        self._subject(phrase)

    def _nested(self) -> None:
        """Enter a relative clause that has a subject: "the cup that the man holds is red"."""
        self._end_verb()
        self._outer, self._gap = self._subjects, self._relative
        self._relative = self._verb = None
        self._linked = False

    def _owned(self, phrase: NounPhrase) -> None:
        owner = self._mentions.named(phrase.determiner)
        if owner is not None and phrase.tangible:
            self._claims.own(owner, phrase)

    def _subject(self, phrase: NounPhrase) -> None:
        # "A man and a woman walk": both walk.
        joins = self._linked and self._subjects and self._verb is None
        self._end_verb()
        self._subjects = (*self._subjects, phrase) if joins else (phrase,)
        self._verb = None
        self._objects = []
        self._role = None
        self._existential = False
        if not joins:
            self._had_main_verb = False
            self._place_fronted(phrase)
        self._mentions.saw(phrase, subject=True)

    def _place_fronted(self, phrase: NounPhrase) -> None:
        for relation, place in self._fronted:
            self._claims.relate(phrase, relation, place, phrase.negated)
        self._fronted = []

    def _object(self, phrase: NounPhrase, following: Chunk | None) -> None:
        verb = self._verb
        assert verb is not None
        # "The image shows a dog" is about the dog.
        if presents(verb, self._verb_subjects):
            self._exists(phrase)
            return
        relation = "is" if verb.lemma in EQUATING else said(verb)
        if not self._subjects and verb.form in ("ing", "participle"):
            self._fronted.append((relation, phrase))
        self._objects.append(phrase)
        self._mentions.saw(phrase, subject=False)
        subjects, target = self._verb_subjects, phrase
        if relation == "is":
            subjects = self._meant(subjects, PERSONAL)
            if subjects != self._verb_subjects and phrase.complement is not None:
                target = phrase.complement  # "the role of the man is that of a chef"
        self._role = Role(subjects, relation, verb.negated)
        deny_object(phrase, subjects, verb.negated)
        if verb.lemma in GIVING and len(self._objects) > 1 and self._last is self._objects[-2]:
            # "Gives the vineyard a warm glow" says what the vineyard has.
            self._claims.relate(self._objects[-2], "has", phrase, verb.negated)
            return
        becomes = following is not None and following.kind == "A" and verb.lemma in CHANGING
        # "Makes the room bright": the claim is that the room is bright, and not that it is made.
        for subject in () if becomes else subjects:
            self._claims.relate(subject, relation, target, verb.negated)
        # A relation to an unresolved pronoun is not a claim, so that the verb is claimed by itself.
        if not phrase.pronoun or phrase.named is not None:
            self._verb_said = True

    def _exists(self, phrase: NounPhrase) -> None:
        """Make the object of "there is" or "the image shows" the subject of what follows."""
        verb = self._verb
        joins = self._linked and self._subjects and self._existential
        phrase.negated = phrase.negated or (verb is not None and self._denies(verb))
        self._had_main_verb = True
        self._subjects = (*self._subjects, phrase) if joins else (phrase,)
        # Nothing acts in "there is".
        self._verb_subjects = ()
        self._existential = True
        self._verb_said = True
        self._role = None
        self._objects = []
        if not joins:
            self._place_fronted(phrase)
        self._mentions.saw(phrase, subject=True)

    def _after_preposition(self, phrase: NounPhrase, prep: Chunk) -> None:
        self._mentions.saw(phrase, subject=False)
        verb = self._verb
        self._aside = prep.text in EVIDENCE_PREPOSITIONS
        # What is evidence shares no role with what it is evidence of.
        if self._aside:
            self._role = None
            guessed = prep.text in EXAMPLES and phrase.modality is not Modality.STATED
            self._examples = guessed or prep.text in REPLACING
            self._pass_over(phrase)
            return
        if verb is not None and self._verb_subjects and self._belongs_to(verb, prep, phrase):
            relation = placed_relation(verb, self._objects, prep.text)
            # "is full of apples": the adjective is part of the relation.
            if self._predicate is not None and self._predicate.last == prep.first:
                relation = f"{self._predicate.text} {prep.text}"
            subjects = self._verb_subjects
            negated = self._denies(verb)
            if self._predicate is not None and self._predicate.last == prep.first:
                negated = negated or self._predicate.negated
            self._verb_said = self._verb_said or not is_medium(phrase, relation)
        elif verb is not None and not self._subjects and verb.form in ("ing", "participle"):
            # "Painted with stripes, it" and "holding a cup in her hand, she"
            self._fronted.append((placed_relation(verb, self._objects, prep.text), phrase))
            return
        elif verb is not None and self._last is not None and self._last.first < verb.first:
            self._role = None  # of a verb without a subject: "..., suggested by the shadows"
            return
        elif self._last is not None:
            shared = self._parallel or self._attachment.is_region(self._last)
            subjects = sharing(self._last, prep, self._role if shared else None)
            listed_first = self._verb is None and self._role is None
            if listed_first and self._subjects[-1:] == (self._last,) and prep.text in SHARED_PLACES:
                subjects = self._subjects  # "two cats and a dog on a bed"
            if prep.text == "without" and self._role is not None and self._role.relation == "with":
                subjects = self._role.subjects  # "a bed with pillows without a blanket"
            relation = prep.text
            negated = any(subject.negated for subject in subjects)
        else:  # "on the desk" before anything else
            self._fronted.append((prep.text, phrase))
            return
        negated = negated or prep.negated
        self._role = Role(subjects, relation, negated, placing=True)
        for subject in subjects:
            self._claims.relate(subject, relation, phrase, negated)

    def _pass_over(self, phrase: NounPhrase) -> None:
        """Make no claim of an example of what is guessed, or of what something else replaces."""
        if self._examples:
            self._claims.leave_out(phrase)

    def _belongs_to(self, verb: VerbGroup, prep: Chunk, phrase: NounPhrase) -> bool:
        subjects, objects = self._verb_subjects, self._objects
        if self._parallel and self._role is not None and self._role.placing:
            return self._role.subjects == subjects
        return self._attachment.to_verb(prep, phrase, verb, subjects, self._last, objects)

    # Verbs.

    def _verb_group(self, verb: VerbGroup, before: Chunk | None, following: Chunk | None) -> None:
        # "There seems to be" is the same.
        if self._existential and self._verb is None and verb.lemma in ("be", "exist", "seem"):
            self._verb, self._verb_subjects, self._verb_said = verb, (), True
            self._objects = []
            return
        self._aside = self._contrasted = False
        if verb.form == "ing" and self._prep is not None and self._prep.text in NAMING:
            self._gerund(verb, self._prep)
            return
        # "without touching it", "sits instead of standing"
        if verb.form == "ing" and self._prep is not None:
            verb.negated |= self._prep.text in {"without", *REPLACING}
        if self._denied:
            verb.negated, self._denied = True, False
        subjects = self._subjects_of(verb, before)
        self._end_verb()
        if self._relative is None and verb.form == "finite":
            self._had_main_verb = True
        self._relative = None
        self._existential = False
        self._verb = verb
        self._verb_subjects = subjects if verb.lemma in COPULAS else self._meant(subjects, PURPOSES)
        opens = isinstance(following, VerbGroup) and following.form == "infinitive"
        opens = opens and (verb.passive or verb.lemma in ATTEMPTING - {"wait"})
        self._verb_said = opens or verb.lemma in COPULAS
        self._objects = []
        self._role = None
        self._prep = None
        self._linked = False
        if verb.lemma == "be" and verb.negated and ends_absence(following):
            for subject in subjects:
                subject.negated = True
        # "A dog is shown on a sofa" says that it is there.
        if verb.passive and verb.form == "finite" and verb.lemma in PRESENTING_VERBS:
            verb.lemma = "be"
        if self._gap is not None:
            self._fill_gap(verb, self._gap, following)

    def _fill_gap(self, verb: VerbGroup, gap: NounPhrase, following: Chunk | None) -> None:
        """Make the noun before a relative clause its object if it has no other object."""
        # The clause has one gap, and the next verb none.
        self._gap = None
        if verb.lemma in COPULAS or isinstance(following, NounPhrase) or verb.passive:
            return
        if following is not None and following.kind == "I":
            return
        relation = f"{said(verb)} {self._gap_prep}".strip()
        for subject in self._verb_subjects:
            self._claims.relate(subject, relation, gap, verb.negated)
        self._verb_said = True

    def _gerund(self, verb: VerbGroup, prep: Chunk) -> None:
        """Add an activity after a preposition: (barrels, used for, aging)."""
        named = NounPhrase(verb.text, verb.first, verb.last, verb.start, verb.end)
        self._after_preposition(named, prep)
        self._end_verb()
        self._verb, self._verb_subjects, self._verb_said = verb, (), True
        self._objects = []
        self._last, self._prep, self._linked = named, None, False

    def _end_verb(self) -> None:
        """Add a verb without object and place as an attribute: (dog, is, running)."""
        verb = self._verb
        if verb is None or self._verb_said:
            return
        self._verb_said = True
        # An infinitive without object is a purpose: "waits to eat".
        if verb.form == "infinitive" or verb.lemma in SAYING_NOTHING:
            return
        text = verb.text if verb.passive or verb.form == "ing" else ing_form(verb.lemma)
        if verb.particle:
            text = f"{text} {verb.particle}"
        for subject in self._verb_subjects:
            self._claims.attribute(subject, text, verb.verb_start, verb.end, verb.negated)
