"""Triplets: claims of a response and facts of a scene graph, in three parts."""

from __future__ import annotations

import json
import re
from typing import NamedTuple, TypeAlias

from .texts import json_kind, well_formed

__all__ = [
    "MAX_PART_CHARS",
    "ClaimParts",
    "Sentence",
    "Triplet",
    "TripletError",
    "WrittenTriplet",
    "reference_of",
    "triplet_of",
]

MAX_PART_CHARS = 2_000
"""Longest part of a claim; a longer one is an extractor error, such as a whole response."""

_SHOWN_CHARS = 80
# A comma between parts has a space on at least one side; one inside 1,000 has none.
_SEPARATOR = re.compile(r"\s*,\s+|\s+,\s*")


class Triplet(NamedTuple):
    """A triplet (subject, relation, object), section 3.1 of the Tri-HE paper."""

    subject: str
    """The subject of the claim."""
    relation: str
    """The relation; ``is`` for an attribute."""
    object: str
    """The object of the relation, or the attribute."""

    @property
    def written(self) -> str:
        """Return the triplet as files write it."""
        return f"({self.subject}, {self.relation}, {self.object})"


class WrittenTriplet(Triplet):
    """A triplet with the exact text of its file, which its parts can't reproduce.

    The released matcher compares the text of the file, so that a slip such as ``(bus, is,stopped)``
    changes its scores. Equal parts make equal triplets, however they were written.
    """

    _text: str

    def __new__(cls, subject: str, relation: str, object: str, written: str = "") -> WrittenTriplet:
        """Create the triplet with its parts and its text."""
        triplet = super().__new__(cls, subject, relation, object)
        triplet._text = written or Triplet(subject, relation, object).written
        return triplet

    @property
    def written(self) -> str:
        """Return the text of the file."""
        return self._text


class Sentence(NamedTuple):
    """A whole sentence as a claim: the paper's baseline without triplets (its Table 3)."""

    text: str
    """The sentence."""


ClaimParts: TypeAlias = Triplet | Sentence
"""A claim as its parts: three of a triplet, one of a sentence."""


class TripletError(ValueError):
    """A value that is not a triplet."""

    def __init__(self, value: object, problem: str) -> None:
        self.value, self.problem = value, problem
        super().__init__(
            f"{_shown(value)} is not a triplet: {problem}; "
            'write three texts, such as ["man", "riding", "horse"] or "(man, riding, horse)"'
        )


def triplet_of(value: object) -> Triplet:
    """Return the triplet of a claim, parsed strictly.

    A list has exactly three parts, which may hold commas. A text is split at its commas, with or
    without brackets around it. Commas inside parts can't be distinguished from those between
    them, so that a text of two or four parts is refused, never guessed.

    Args:
        value: A list or tuple of three texts, or a text such as ``(man, riding, horse)``.

    Raises:
        TripletError: It has two or four parts, a part that is empty, too long or no text.
    """
    return _three(value, _parts(value))


def reference_of(value: object) -> Triplet:
    """Return the triplet of a scene graph, parsed as leniently as published files need.

    Some of Tri-HE's own triplets have a comma too many, such as ``(woman, reason for attention,
    curiosity, photographer)``: everything after the second comma is the object. If the parts cannot
    reproduce the text, it is kept for the published matcher.

    Args:
        value: A list or tuple of three texts, or a text of three or more parts.

    Raises:
        TripletError: It has fewer than three parts, or a part that is empty, too long or no text.
    """
    if not isinstance(value, str):
        return _three(value, _parts(value))
    value = well_formed(value)
    parts = _parts(value)
    triplet = _three(value, [*parts[:2], ", ".join(map(str, parts[2:]))] if parts[3:] else parts)
    if _bare(value) == _bare(triplet.written):
        return triplet
    return WrittenTriplet(*triplet, written=value.strip())


def _bare(text: str) -> str:
    return " ".join(re.sub("[(),]", "", text).split())


def _parts(value: object) -> list[object]:
    if isinstance(value, list | tuple):
        return list(value)
    if not isinstance(value, str):
        raise TripletError(value, f"it is {json_kind(value)}")
    inside = _inside(value)
    parts = _SEPARATOR.split(inside)
    return list(parts if len(parts) > 2 else inside.split(","))


def _inside(text: str) -> str:
    text = text.strip()
    return text[1:-1] if text[:1] in "([" and text[-1:] in ")]" and len(text) > 1 else text


def _three(value: object, parts: list[object]) -> Triplet:
    if len(parts) != 3:
        raise TripletError(value, f"it has {len(parts)} part{'' if len(parts) == 1 else 's'}")
    return Triplet(*(_part(value, number, part) for number, part in enumerate(parts, start=1)))


def _part(value: object, number: int, part: object) -> str:
    if not isinstance(part, str):
        raise TripletError(value, f"part {number} is {json_kind(part)}, not a text")
    part = well_formed(part.strip())
    if not part:
        raise TripletError(value, f"part {number} is empty")
    if len(part) > MAX_PART_CHARS:
        raise TripletError(value, f"part {number} is longer than {MAX_PART_CHARS} characters")
    return part


def _shown(value: object) -> str:
    # Bounded output: the repr of a nested value may be as large as its file.
    if isinstance(value, list | tuple):
        value = [_brief(item) for item in value[:5]]
    elif isinstance(value, str):
        value = value[:_SHOWN_CHARS]
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    return text if len(text) <= 2 * _SHOWN_CHARS else text[: 2 * _SHOWN_CHARS] + "…"


def _brief(item: object) -> object:
    """Return a part as it is shown; lists and objects may be as large as a file."""
    if isinstance(item, str):
        return item[:_SHOWN_CHARS]
    return item if item is None or isinstance(item, (int, float)) else "…"
