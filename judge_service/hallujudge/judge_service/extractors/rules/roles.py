"""Word lists of the triplet rules, and the roles of coordinated noun phrases."""

from __future__ import annotations

from typing import NamedTuple

from .phrases import Chunk, NounPhrase
from .words import MEDIUM_NOUNS, listed

__all__ = [
    "CAUSING",
    "CLAUSE_TOO",
    "EQUATING",
    "HEDGES",
    "LOOSE",
    "NAMING",
    "OWNED",
    "SAYING_NOTHING",
    "VIEWERS",
    "Role",
    "own_place",
    "worth_stating",
]

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
