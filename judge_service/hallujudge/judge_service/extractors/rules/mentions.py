"""Resolution of pronouns to noun phrases."""

from __future__ import annotations

from .lexicon import Lexicon
from .phrases import NounPhrase
from .words import FEMALE, MALE, MEDIUM_NOUNS, PERSON_WORDS, listed

__all__ = ["Mentions"]

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

    def named(self, pronoun: str, besides: tuple[NounPhrase, ...] = ()) -> NounPhrase | None:
        """Return the phrase to which a pronoun refers, or None.

        Args:
            pronoun: The pronoun in lower case.
            besides: Phrases to which it cannot refer: the subjects of the verb whose object it is.
        """
        if pronoun.endswith(("self", "selves")):
            besides = ()
        for kept in (self._subjects, self._others):
            for phrase in reversed(kept):
                if self._agrees(phrase, pronoun) and phrase not in besides:
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
