"""What the triplet rules know of words, and how coordinated phrases share a role."""

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
# Verbs that say nothing of their subject by themselves, or nothing that a picture could show.
SAYING_NOTHING = listed(
    "be have do suggest indicate imply mean seem appear feel know think show exist include involve "
    "depend make cause give help use enjoy try need want like let get go provide consider"
)
# Participles that speak of the clause's subject even right after its object.
LOOSE = listed("use suggest indicate imply give include")
# Prepositions after which an -ing form names an activity and says nothing of the subject.
NAMING = listed("for of about from to than like on")
HEDGES = listed("likely unlikely possible probable possibly certain sure able ready")
# Prepositions that a clause may follow as well: "considering the man wears a coat".
CLAUSE_TOO = listed("considering given like despite except")
EQUATING = listed("be become remain")
OWNED = listed("his her their its")


class Role(NamedTuple):
    """What a coordinated noun phrase shares with the one before it."""

    subjects: tuple[NounPhrase, ...]
    relation: str
    negated: bool
    placing: bool = False


def worth_stating(phrase: NounPhrase, verbless: bool) -> bool:
    """Tangible things, and whatever makes up an answer without a verb ("A baseball game.")."""
    if phrase.pronoun or phrase.lemma in MEDIUM_NOUNS:
        return False
    return phrase.tangible or verbless


def own_place(phrase: NounPhrase, role: Role, following: Chunk | None) -> bool:
    """Whether a coordinated phrase has a place of its own and shares none with the one before."""
    placed = following is not None and following.kind == "I" and following.text != "of"
    return placed and role.placing and phrase.determiner in ("a", "an", "another")
