"""Word lists of the triplet rules, and the roles of coordinated noun phrases."""

from __future__ import annotations

from typing import NamedTuple

from .phrases import Chunk, NounPhrase, VerbGroup
from .words import MEDIUM_NOUNS, PRESENTING_VERBS, listed

__all__ = [
    "CAUSING",
    "CLAUSE_TOO",
    "EQUATING",
    "HEDGES",
    "LOOSE",
    "NAMING",
    "OWNED",
    "SAYING_NOTHING",
    "SPENDING",
    "STANDING",
    "Role",
    "own_place",
    "presents",
    "sharing",
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
