"""Pronouns: the earlier noun phrases that they stand for, and "it" that stands for nothing."""

from __future__ import annotations

from collections.abc import Callable

from .lexicon import Lexicon
from .phrases import Chunk, NounPhrase, VerbGroup
from .word_lists import COPULAS, FEMALE, MALE, MEDIUM_NOUNS, PERSON_WORDS, listed

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
        if phrase.pronoun:
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
        found = self._latest(lambda phrase: self._agrees(phrase, pronoun), excluded)
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
        return phrase.lemma in PERSON_WORDS or self._lexicon.reading(phrase.lemma).person

    def _agrees(self, phrase: NounPhrase, pronoun: str) -> bool:
        lemma = phrase.lemma
        if lemma in MEDIUM_NOUNS:
            return False
        several = pronoun in _SOME or pronoun in _THEY
        if several and self._lexicon.reading(lemma).file == _BODY_FILE:
            return False
        if pronoun in _SOME:
            return phrase.plural
        if pronoun in _THEY:
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
    """Return whether the clause of the pronoun at i tells a time or weather: "it is winter"."""
    verb = chunks[i + 1] if i + 1 < len(chunks) else None
    if not isinstance(verb, VerbGroup):
        return False
    if verb.lemma in _WEATHER_VERBS:
        return True
    if verb.lemma not in COPULAS:
        return False
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
