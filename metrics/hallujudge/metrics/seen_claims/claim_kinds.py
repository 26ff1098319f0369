"""What a claim is about: an object, an attribute, a count or a relation, by its words."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from ..framework.claims import ClaimParts, Triplet

ClaimKind: TypeAlias = Literal["object", "attribute", "count", "relation", ""]
"""The kind of a claim; empty for a sentence, which may hold several."""
KINDS = ("object", "attribute", "count", "relation")
"""The kinds with scores of their own."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NUMBERS = _words(
    "zero two three four five six seven eight nine ten eleven twelve dozen hundred thousand"
)
# "One" alone is a number, and before a noun mostly an article.
_ALONE = _NUMBERS | {"one", "single"}
_COPULAS = _words("is are was were be being am")
_PRESENT = _words("present there visible here shown seen existing")
_HOLDING = _words("has have contains contain shows show depicts depict features includes include")
_COUNTING = _words("number numbers count counts total totals")
# What a caption says that it describes; the rule extractor's own list is of all such nouns.
_MEDIA = _words("image picture photo photograph scene video clip frame view")
_WORD = re.compile(r"[a-z0-9]+")


def kind_of(claim: ClaimParts) -> ClaimKind:
    """Return the kind of a claim.

    A triplet whose relation is a form of "be" says that something is there (object), how many there
    are (count) or what it is like (attribute). Any other one relates two things, unless the first
    is the image itself.

    Args:
        claim: A triplet; a sentence has no kind.
    """
    if not isinstance(claim, Triplet):
        return ""
    subject, relation, target = (_WORD.findall(part.lower()) for part in claim)
    said = [word for word in relation if word not in ("not", "no", "t")]
    if set(said) <= _COPULAS:
        return _kind_of_state(subject, target)
    if set(subject) & _MEDIA and set(said) & _HOLDING:
        return "count" if target[:1] and _is_number(target[0]) else "object"
    if set(said) <= _COPULAS | _COUNTING and _is_alone(target):
        return "count"
    if set(target) & _MEDIA and said[-1:] in (["in"], ["within"]) and set(said[:-1]) <= _AT:
        return "count" if subject[:1] and _is_number(subject[0]) else "object"
    return "relation"


_AT = _COPULAS | _PRESENT | {"appears", "appear"}


def _kind_of_state(subject: list[str], target: list[str]) -> ClaimKind:
    if _is_alone(target):
        return "count"
    if target and set(target) <= _PRESENT:
        return "count" if subject[:1] and _is_number(subject[0]) else "object"
    return "attribute"


def _is_number(word: str) -> bool:
    return word in _NUMBERS or word.isdigit()


def _is_alone(words: list[str]) -> bool:
    """Return whether words are a number, with nothing but a noun of counting around it."""
    left = [word for word in words if word not in ("in", "number", "exactly", "only", "of", "all")]
    return len(left) == 1 and (left[0] in _ALONE or left[0].isdigit())
