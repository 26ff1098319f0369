"""What extractors give back, and the interface that rules and language models share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

__all__ = [
    "DescriptionPair",
    "ExtractedTriplet",
    "Keyword",
    "KeywordExtractor",
    "Keywords",
    "PairKeywords",
    "Span",
    "TripletExtractor",
]


class Span(NamedTuple):
    """Part of a text, in Unicode code points."""

    start: int
    """First character."""
    end: int
    """One past the last character."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedTriplet:
    """A claim of the form (object, relation, object) and where it stands in the text."""

    subject: str
    """The first object, as its head words stand in the text, such as ``polar bear``."""
    relation: str
    """How it stands to the second: ``is`` for attributes, else the verb and preposition."""
    object: str
    """The second object, or the attribute's value."""
    start: int
    """First character of the claim in the text."""
    end: int
    """One past its last character."""
    subject_span: Span
    """Where the first object is named; a pronoun's own place where one stands for it."""
    object_span: Span
    """Where the second object or the attribute stands."""
    negated: bool = False
    """Whether the text denies the claim; the relation then carries ``not`` or ``no`` as well."""

    @property
    def parts(self) -> tuple[str, str, str]:
        """Subject, relation and object: the form in which claims are judged."""
        return (self.subject, self.relation, self.object)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyword:
    """A word or short phrase in its root form, and where it stands in the text."""

    text: str
    """The root form, lower case: ``pick up`` for "picks up", ``dog`` for "dogs"."""
    start: int
    """First character in the text, in Unicode code points."""
    end: int
    """One past the last character. A split verb's span covers what stands between its parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keywords:
    """Objects and behaviours of one text, in the order of the text, each root form once."""

    objects: tuple[Keyword, ...] = ()
    """Tangible objects of at most two words, in the singular."""
    behaviors: tuple[Keyword, ...] = ()
    """Actions in root form, particles kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescriptionPair:
    """The two descriptions of one image sequence that are held against each other."""

    reference: str = ""
    """The human description; empty: its keywords are not wanted."""
    predicted: str = ""
    """The model's description; empty: it says nothing, or its keywords are not wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairKeywords:
    """The four keyword lists of two descriptions."""

    reference: Keywords = Keywords()
    """Keywords of the human description."""
    predicted: Keywords = Keywords()
    """Keywords of the model's description."""


@runtime_checkable
class TripletExtractor(Protocol):
    """Takes (object, relation, object) claims out of texts."""

    @property
    def label(self) -> str:
        """Short name and version, as signatures show it, such as ``rules-1``."""
        ...

    async def extract_many(self, texts: Sequence[str]) -> list[list[ExtractedTriplet]]:
        """The claims of each text, texts in the order given, claims in the order of the text."""
        ...


@runtime_checkable
class KeywordExtractor(Protocol):
    """Takes object and behaviour keywords out of texts."""

    @property
    def label(self) -> str:
        """Short name and version, as signatures show it, such as ``rules-1``."""
        ...

    async def extract_many(self, texts: Sequence[str]) -> list[Keywords]:
        """The keywords of each text, in the order given."""
        ...
