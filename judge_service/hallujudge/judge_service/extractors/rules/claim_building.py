"""Claims that the rules build: each once, with what pronouns refer to in place of them.

A pronoun refers to an earlier noun phrase. The "it" of "it is raining" refers to nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

from hallujudge.metrics.framework.claims import Modality

from .. import ExtractedTriplet, Span
from .lexicon import VOWELS, Lexicon
from .phrases import Chunk, NounPhrase, VerbGroup
from .word_lists import COPULAS, FEMALE, MALE, MEDIUM_NOUNS, listed

# The line of each word list and number in docs/explanation/rule-extractor-quality.md, "What each
# word list is for", says how many texts have other claims without it.

# "It is winter" speaks of no thing that "it" could name.
_TIMES_SAID = listed(
    "spring summer autumn fall winter day night morning noon midday afternoon evening dusk dawn "
    "daytime nighttime daylight sunset sunrise midnight season weekend weather month year time "
    "january february march april may june july august september october november december"
)
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
    that agrees. "They" may be one person, and "it" may be an abstract subject, where nothing else
    agrees. Without such a phrase a pronoun is not resolved.

    Args:
        lexicon: The lexicon, which has the nouns for persons.
    """

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self._subjects: list[NounPhrase] = []
        self._others: list[NounPhrase] = []

    def saw(self, phrase: NounPhrase, *, subject: bool) -> None:
        """Add a noun phrase to which pronouns may refer."""
        # What a pronoun stands for was seen itself; the pronoun would hide it.
        if phrase.pronoun:
            return
        kept = self._subjects if subject else self._others
        kept.append(phrase)
        # Bounded, since each pronoun would otherwise search the whole text.
        del kept[:-_KEPT]

    def named(self, pronoun: str, excluded: tuple[NounPhrase, ...] = ()) -> NounPhrase | None:
        """Return the phrase to which a pronoun refers, or None.

        Args:
            pronoun: The pronoun in lower case.
            excluded: Phrases to which it cannot refer: the subjects of the verb whose object it is.
        """
        # "Himself" is the verb's own subject, which other pronouns can't be.
        if pronoun.endswith(("self", "selves")):
            excluded = ()
        found = self._latest(lambda phrase: self._agrees(phrase, pronoun), excluded)
        # "A person ... they", where nothing in the plural was named.
        if found is None and pronoun in _THEY:
            return self._latest(self._is_person, excluded)
        if found is None and pronoun == "it":
            found = next((p for p in reversed(self._subjects) if _is_abstract(p, excluded)), None)
        # The image itself makes no claims.
        return None if found is not None and found.lemma in MEDIUM_NOUNS else found

    def _latest(
        self, agrees: Callable[[NounPhrase], bool], excluded: tuple[NounPhrase, ...]
    ) -> NounPhrase | None:
        kept = (*reversed(self._subjects), *reversed(self._others))
        return next((p for p in kept if agrees(p) and p not in excluded), None)

    def _is_person(self, phrase: NounPhrase) -> bool:
        return self._lexicon.is_person(phrase.lemma)

    def _agrees(self, phrase: NounPhrase, pronoun: str) -> bool:
        lemma = phrase.lemma
        if lemma in MEDIUM_NOUNS:
            return False
        several = pronoun in _SOME or pronoun in _THEY
        # "They" are hardly hands or eyes.
        if several and self._lexicon.reading(lemma).file == _BODY_FILE:
            return False
        if pronoun in _SOME:
            return phrase.plural
        if pronoun in _THEY:
            # Nouns in the singular that name several people.
            return phrase.plural or lemma in ("couple", "family", "team", "crowd", "pair")
        if phrase.plural:
            return False
        person = self._is_person(phrase)
        if pronoun in _HE:
            return person and lemma not in FEMALE
        if pronoun in _SHE:
            return person and lemma not in MALE
        return pronoun in _IT and not person and phrase.tangible


def _is_abstract(phrase: NounPhrase, excluded: tuple[NounPhrase, ...]) -> bool:
    return not (phrase.tangible or phrase.plural or phrase in excluded)


_WEATHER = listed(
    "sunny rainy windy cloudy snowy foggy stormy chilly humid overcast daytime nighttime dark "
    "light cold warm hot cool bright early late temperate mild"
)
_WEATHER_VERBS = listed("rain snow drizzle hail")


def tells_weather(chunks: list[Chunk], i: int) -> bool:
    """Return whether the clause of the pronoun at i is about time or weather: "it is winter"."""
    verb = chunks[i + 1] if i + 1 < len(chunks) else None
    if not isinstance(verb, VerbGroup):
        return False
    if verb.lemma in _WEATHER_VERBS:
        return True
    if verb.lemma not in COPULAS:
        return False
    # Within three chunks: "it is very cold", "it is in the evening".
    for chunk in chunks[i + 2 : i + 5]:
        if isinstance(chunk, NounPhrase):
            return chunk.lemma in _TIMES_SAID
        if chunk.text in _WEATHER:
            return True
        if chunk.kind not in "IA":
            return False
    return False


def equates(chunks: list[Chunk], i: int, named: NounPhrase) -> bool:
    """Return whether "it" at i is called something else in kind: "it could be a style choice"."""
    verb, target = [*chunks[i + 1 : i + 3], None, None][:2]
    if not isinstance(verb, VerbGroup) or not isinstance(target, NounPhrase):
        return False
    return chunks[i].text == "it" and verb.lemma == "be" and named.tangible > target.tangible


def is_empty_it(chunks: list[Chunk], i: int) -> bool:
    """Return whether "it" at i only announces a clause: "it is likely that", "it is hard to"."""
    following = chunks[i + 1 : i + 4]
    if len(following) < 3 or not isinstance(following[0], VerbGroup):
        return False
    adjective, clause = following[1:]
    if following[0].lemma not in COPULAS or adjective.kind != "A":
        return False
    infinitive = isinstance(clause, VerbGroup) and clause.form == "infinitive"
    return infinitive or clause.text == "that" or clause.text == "for"


_PERSONS = listed("he|she|they|someone|somebody|nobody|everyone|everybody|no one|none", "|")
"""Pronouns that, as subjects, name a person without a phrase to which they refer."""
_MOST_TENTATIVE = (Modality.CONDITIONAL, Modality.HEDGED)


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
        # By identity: two phrases with the same words are two things.
        self._placed = set()
        self._starts = [chunk.start for chunk in chunks]
        self._modalities = [chunk.modality for chunk in chunks]

    def relate(self, subject: NounPhrase, relation: str, target: NounPhrase, negated: bool) -> None:
        """Add a relation, unless the object is an unresolved pronoun or the image itself."""
        # That a thing is in the image is what "present" says.
        if _unknown(subject) or _lacks_name(target) or is_medium(target, relation):
            return
        negated = negated or subject.negated or target.negated
        first, second = _name(subject), _name(target)
        if negated and relation == "of":
            # "no signs of rain" denies the signs, not the relation.
            self.state(subject)
            self._place(subject, target)
            return
        # "A dog next to a dog" would relate a name to itself, which no image can refute.
        if first != second:
            self._place(subject, target)
            self._add(first, relation, second, _span(subject), _span(target), negated)

    def attribute(
        self, subject: NounPhrase, text: str, start: int, end: int, negated: bool
    ) -> None:
        """Add an attribute, unless the subject is an unresolved pronoun."""
        if _unknown(subject):
            return
        self._place(subject)
        negated = negated or subject.negated
        self._add(_name(subject), "is", text, _span(subject), Span(start, end), negated)

    def attributes(self, phrase: NounPhrase) -> None:
        """Add the attributes that stand before a noun."""
        for text, start, end in phrase.attributes:
            self.attribute(phrase, text, start, end, False)

    def _place(self, *phrases: NounPhrase) -> None:
        """Mark phrases as parts of a claim, with the complements in their names."""
        self._placed.update(map(id, phrases))
        self._placed.update([id(each.complement) for each in phrases if each.complement])

    def own(self, owner: NounPhrase, phrase: NounPhrase) -> None:
        """Add the possession of "his hat"; the place of the claim's subject is the pronoun's."""
        self._place(phrase)
        # The determiner is the pronoun, and shows where the text says who owns it.
        place = Span(phrase.start, phrase.start + len(phrase.determiner))
        self._add(owner.text, "has", phrase.text, place, _span(phrase), False)

    def state(self, phrase: NounPhrase) -> None:
        """Add that an object is present, unless it belongs to another claim of the sentence."""
        # To name a thing claims that it is there: without this, a hallucinated one that has no verb
        # would be missed.
        if id(phrase) not in self._placed:
            span = _span(phrase)
            self._add(phrase.text, "is", "present", span, span, phrase.negated)

    def leave_out(self, phrase: NounPhrase) -> None:
        """Do not claim that an object is present."""
        self._place(phrase)

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
        # With the places: "a man holds a cup. A man holds a cup" claims two things.
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


def placed_relation(verb: VerbGroup, objects: Sequence[NounPhrase], prep: str) -> str:
    """Return a verb, its object and its preposition; the preposition alone for "be".

    "Cuts the cake with a knife" relates the knife by "cuts cake with": "cuts with" is half of it.
    """
    if verb.lemma == "be":
        return prep
    # With two objects, which of them the tool is used on can't be known.
    if len(objects) == 1 and not (_lacks_name(objects[0]) or objects[0].text.endswith("self")):
        return f"{said(verb)} {_name(objects[0])} {prep}"
    return f"{said(verb)} {prep}"


def ing_form(lemma: str) -> str:
    """Return the -ing form of a verb."""
    if lemma.endswith("ie"):
        return f"{lemma[:-2]}ying"
    # "Seeing", "dyeing" and "tiptoeing" keep their e.
    if lemma.endswith("e") and not lemma.endswith(("ee", "ye", "oe")):
        return f"{lemma[:-1]}ing"
    # Longer verbs double only when the last syllable is stressed, which spelling does not show.
    short = len(lemma) in (3, 4) and lemma[-1] not in VOWELS and lemma[-1] not in "wxy"
    if short and lemma[-2] in VOWELS and lemma[-3] not in VOWELS:
        return f"{lemma}{lemma[-1]}ing"
    return f"{lemma}ing"


def is_medium(target: NounPhrase, relation: str) -> bool:
    """Return whether the target is the image itself: everything is "in the image"."""
    return (
        target.lemma in MEDIUM_NOUNS
        # "In an image on the wall" is a thing in the scene; "in the image" is the image itself.
        and target.determiner in ("the", "this", "these")
        and relation.rsplit(" ", 1)[-1] in ("in", "of", "from", "throughout", "within", "across")
    )


def deny_object(phrase: NounPhrase, subjects: Sequence[NounPhrase], negated: bool) -> None:
    """Mark an object that is denied of nothing known: "it is not a zoo" claims no zoo."""
    phrase.negated = phrase.negated or (negated and all(map(_unknown, subjects)))


def _unknown(phrase: NounPhrase) -> bool:
    """Return whether nothing says what a subject stands for: "it", "they" without a noun before."""
    return _lacks_name(phrase) and phrase.text not in _PERSONS


def _lacks_name(phrase: NounPhrase) -> bool:
    return phrase.pronoun and phrase.named is None


def _name(phrase: NounPhrase) -> str:
    return phrase.text if phrase.named is None else phrase.named.text


def _span(phrase: NounPhrase) -> Span:
    return Span(phrase.name_start, phrase.end)
