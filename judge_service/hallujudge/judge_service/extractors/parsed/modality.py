"""Which words of a parsed sentence are hedged or part of a condition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics.framework.claims import Modality

from ..rules.tentative import GUESSING, HEDGING, MODALS, SEEMING
from ..rules.words import EVIDENCE_PREPOSITIONS, listed

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

__all__ = ["modalities"]

_IF = listed("if unless")
_REASONS = listed("because as since while although though when until before after")
_UNCERTAIN = listed("possible likely unlikely probable doubtful unclear uncertain")


def modalities(sentence: Span) -> dict[int, Modality]:
    """Return the modality of each token: its own, or that of the word on which it depends."""
    found: dict[int, Modality] = {}
    waiting = [sentence.root]
    while waiting:
        token = waiting.pop()
        above = found.get(token.head.i)
        found[token.i] = _own(token) or _inherited(token, above)
        waiting.extend(child for child in token.children if child.i not in found)
    return found


def _own(token: Token) -> Modality | None:
    """Return the modality that a word gets from its own dependents."""
    for child in token.children:
        lower = child.text.lower()
        if child.dep_ == "mark" and lower in _IF:
            return Modality.HEDGED if _unreal(child) else Modality.CONDITIONAL
        if child.dep_ == "advcl" and any(map(_conditional, child.children)):
            return Modality.CONDITIONAL
    for child in token.children:
        lower = child.text.lower()
        if child.dep_ == "aux" and lower in MODALS:
            return Modality.HEDGED
        if child.dep_ in ("advmod", "mark") and (lower in HEDGING or lower == "whether"):
            return Modality.HEDGED
        if child.dep_ == "cc" and lower == "or":
            return Modality.HEDGED
    if token.dep_ == "conj" and any(
        each.dep_ == "cc" and each.text.lower() == "or" for each in token.head.children
    ):
        return Modality.HEDGED
    return _by_governor(token)


def _conditional(token: Token) -> bool:
    return token.dep_ == "mark" and token.text.lower() in _IF and not _unreal(token)


def _unreal(mark: Token) -> bool:
    """Return whether "if" is that of "as if"."""
    return bool(mark.i) and mark.nbor(-1).text.lower() == "as"


def _by_governor(token: Token) -> Modality | None:
    lemma, dep = token.head.lemma_.lower(), token.dep_
    if dep in ("xcomp", "oprd", "acomp") and lemma in SEEMING:
        return Modality.HEDGED
    if dep in ("ccomp", "dobj", "xcomp") and lemma in GUESSING:
        return Modality.HEDGED
    uncertain = any(
        child.dep_ == "acomp" and child.lemma_.lower() in _UNCERTAIN for child in token.children
    )
    return Modality.HEDGED if uncertain else None


def _inherited(token: Token, above: Modality | None) -> Modality:
    """Return the modality of the governor, unless the word begins something stated."""
    if above is None or above is Modality.STATED:
        return Modality.STATED
    if above is Modality.CONDITIONAL:
        return above
    marks = {child.text.lower() for child in token.children if child.dep_ == "mark"}
    own_clause = token.dep_ == "conj" and any(
        child.dep_ in ("nsubj", "nsubjpass", "expl") for child in token.children
    )
    evidence = token.dep_ == "prep" and token.text.lower() in EVIDENCE_PREPOSITIONS
    stated = token.dep_ in ("nsubj", "nsubjpass") or marks & _REASONS or own_clause or evidence
    return Modality.STATED if stated else above
