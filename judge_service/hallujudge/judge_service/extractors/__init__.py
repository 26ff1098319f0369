"""Extractors: texts in, claims, keywords or nouns out, with the place of each in the text.

This module has the common interface of extractors, and their results.

The rule extractors need no download and no model: a tokeniser, a tagger and pattern rules over a
packed WordNet lexicon. Importing this package reads nothing; the lexicon is read on first use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from hallujudge.metrics.framework.claims import Modality

SYNONYMS = ("keep", "transfer")
"""Whether each description keeps its own words, or synonyms in the four lists become one word."""


class Span(NamedTuple):
    """A part of a text, in Unicode code points."""

    start: int
    """The first character."""
    end: int
    """One past the last character."""


class ExtractedTriplet(Struct, frozen=True, kw_only=True):
    """A claim of the form (subject, relation, object) and its place in the text."""

    subject: str
    """The subject: the head words as written, such as ``polar bear``."""
    relation: str
    """The relation: ``is`` for attributes, else the verb and preposition."""
    object: str
    """The object, or the attribute's value."""
    start: int
    """The first character of the claim."""
    end: int
    """One past its last character."""
    subject_span: Span
    """The place of the subject, or of the pronoun that refers to it."""
    object_span: Span
    """The place of the object or the attribute."""
    negated: bool = False
    """Whether the text denies the claim; the relation then contains ``not`` or ``no``."""
    modality: Modality | None = None
    """Whether the text states or hedges the claim, or makes it a condition; None if unknown."""

    @property
    def parts(self) -> tuple[str, str, str]:
        """The subject, the relation and the object."""
        return (self.subject, self.relation, self.object)


class Keyword(Struct, frozen=True, kw_only=True):
    """A word or short phrase in its root form, and its place in the text."""

    text: str
    """The root form in lower case: ``pick up`` for "picks up", ``dog`` for "dogs"."""
    start: int
    """The first character, in Unicode code points."""
    end: int
    """One past the last character. The span of a split verb includes words inside it."""


class Keywords(Struct, frozen=True, kw_only=True):
    """The objects and behaviours of a text, in its order and without repeats."""

    objects: tuple[Keyword, ...] = ()
    """Tangible objects of at most two words, in the singular."""
    behaviors: tuple[Keyword, ...] = ()
    """Actions in root form, with their particles."""
    # Given words have no place: they come from the file, and need not occur in the text.
    given: frozenset[str] = frozenset()
    """Which of the two came with the item, without places."""

    def words(self, role: str) -> tuple[str, ...]:
        """Return the texts of ``objects`` or ``behaviors``."""
        return tuple(keyword.text for keyword in getattr(self, role))

    def spans(self, role: str) -> tuple[tuple[int, int], ...]:
        """Return the places of these keywords; none if they were given."""
        # Their empty places would be shown as the text's beginning.
        found = () if role in self.given else getattr(self, role)
        return tuple((keyword.start, keyword.end) for keyword in found)


class DescriptionPair(Struct, frozen=True, kw_only=True):
    """The two descriptions of an image sequence that are compared."""

    reference: str = ""
    """The human description; empty if its keywords are not needed."""
    predicted: str = ""
    """The model's description; empty also if its keywords are not needed."""


class PairKeywords(Struct, frozen=True, kw_only=True):
    """The four keyword lists of two descriptions."""

    reference: Keywords = Keywords()
    """The keywords of the human description."""
    predicted: Keywords = Keywords()
    """The keywords of the model's description."""


@runtime_checkable
class TripletExtractor(Protocol):
    """Extracts (subject, relation, object) claims from texts."""

    @property
    def label(self) -> str:
        """Short name and version, as signatures show it, such as ``rules-3``."""

    async def extract_many(
        self, texts: Sequence[str], questions: Sequence[str] = ()
    ) -> list[list[ExtractedTriplet]]:
        """Return the claims of each text, in the order of the text.

        Args:
            texts: The texts.
            questions: The question that each text answers, to whose nouns pronouns may refer;
                empty if there are none.
        """
