"""Whom a pronoun stands for, where it is safe to say."""

from __future__ import annotations

from .lexicon import Lexicon
from .phrases import NounPhrase
from .words import FEMALE, MALE, MEDIUM_NOUNS, PERSON_WORDS, listed

__all__ = ["Mentions"]

_KEPT = 8
"""Mentions that a pronoun may look back over."""

_HE = listed("he him his himself")
_SHE = listed("she her hers herself")
_IT = listed("it its itself")
_SOME = listed("some others another both all several few many most each one two three")
_THEY = listed("they them their themselves theirs")


class Mentions:
    """The noun phrases of a text so far.

    A pronoun takes the latest subject that agrees with it, else the latest mention that does; where
    none agrees it stays as it is.

    Args:
        lexicon: Tells which nouns are persons.
    """

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self._subjects: list[NounPhrase] = []
        self._others: list[NounPhrase] = []

    def saw(self, phrase: NounPhrase, *, subject: bool) -> None:
        """Keeps a noun phrase that pronouns may stand for."""
        if phrase.pronoun or phrase.lemma in MEDIUM_NOUNS:
            return
        kept = self._subjects if subject else self._others
        kept.append(phrase)
        del kept[:-_KEPT]

    def named(self, pronoun: str, besides: tuple[NounPhrase, ...] = ()) -> NounPhrase | None:
        """The phrase that the pronoun stands for, or None.

        Args:
            pronoun: The pronoun, lower case.
            besides: Phrases that it can't stand for: the subjects of the verb whose object it is.
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
            return phrase.plural or lemma in ("couple", "family", "team", "crowd", "pair")
        if phrase.plural:
            return False
        person = lemma in PERSON_WORDS or self._lexicon.reading(lemma).person
        if pronoun in _HE:
            return person and lemma not in FEMALE
        if pronoun in _SHE:
            return person and lemma not in MALE
        return pronoun in _IT and not person and phrase.tangible
