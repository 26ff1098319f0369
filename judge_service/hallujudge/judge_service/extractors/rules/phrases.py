"""Chunks: the parts of a sentence that the rules process."""

from __future__ import annotations

from hallujudge.metrics.framework.claims import Modality

__all__ = ["Chunk", "NounPhrase", "VerbGroup"]


class Chunk:
    """A part of a sentence.

    ``kind`` is N (noun phrase), V (verb group), I (preposition), A (predicate adjective), X
    (existential "there"), or the tag of a linking word (C , W Q . :).
    """

    __slots__ = ("end", "first", "kind", "last", "modality", "negated", "start", "text")

    def __init__(self, kind: str, text: str, first: int, last: int, start: int, end: int) -> None:
        self.kind = kind
        self.text = text
        self.first = first
        """The first token."""
        self.last = last
        """One past the last token."""
        self.start = start
        """The first character."""
        self.end = end
        """One past the last character."""
        self.negated = False
        self.modality = Modality.STATED
        """Whether the sentence states it, hedges it or makes it a condition."""


class NounPhrase(Chunk):
    """A noun phrase; its text is the name without determiners and attributes."""

    __slots__ = (
        "attributes",
        "determiner",
        "lemma",
        "measured",
        "modifier",
        "name_start",
        "named",
        "plural",
        "possessor",
        "pronoun",
        "tangible",
    )

    def __init__(self, name: str, first: int, last: int, start: int, end: int) -> None:
        super().__init__("N", name, first, last, start, end)
        self.name_start = start
        self.lemma = name
        """The head noun in the singular."""
        self.modifier = ""
        """The word before the head that forms a compound with it; may be empty."""
        self.attributes: list[tuple[str, int, int]] = []
        """Visible adjectives with their places."""
        self.determiner = ""
        self.plural = False
        self.pronoun = False
        self.tangible = False
        self.measured = False
        """Whether it is a measure, such as "group", that may precede "of"."""
        self.possessor: NounPhrase | None = None
        self.named: NounPhrase | None = None
        """The phrase to which a pronoun refers."""


class VerbGroup(Chunk):
    """A verb with its auxiliaries and particle; its text is the main verb as written."""

    __slots__ = (
        "form",
        "lemma",
        "particle",
        "particle_span",
        "passive",
        "singular",
        "verb_start",
    )

    def __init__(self, text: str, first: int, last: int, start: int, end: int) -> None:
        super().__init__("V", text, first, last, start, end)
        self.verb_start = start
        self.lemma = text
        self.particle = ""
        self.particle_span = (0, 0)
        self.form = "finite"
        """``finite``, ``ing``, ``participle`` or ``infinitive``."""
        self.passive = False
        self.singular = False
        """Whether its first word agrees with a singular subject: "is", "has", "holds"."""
