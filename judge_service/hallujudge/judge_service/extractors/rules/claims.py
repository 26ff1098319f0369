"""Collection of the claims of a text, without repeats."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from hallujudge.metrics.framework.claims import Modality

from ..values import ExtractedTriplet, Span
from .phrases import Chunk, NounPhrase, VerbGroup
from .words import MEDIUM_NOUNS

__all__ = ["Claims", "ing_form", "placed_relation", "said"]

_MOST_TENTATIVE = (Modality.CONDITIONAL, Modality.HEDGED)
_VOWELS = frozenset("aeiou")


class Claims:
    """The claims of one text."""

    def __init__(self) -> None:
        self.found: list[ExtractedTriplet] = []
        self._seen: set[tuple[str, str, str, int, int]] = set()
        self._placed: set[int] = set()
        self._starts: list[int] = []
        self._modalities: list[Modality] = []

    def next_sentence(self, chunks: Sequence[Chunk]) -> None:
        """Start a sentence, in which no noun phrase belongs to a claim yet."""
        self._placed = set()
        self._starts = [chunk.start for chunk in chunks]
        self._modalities = [chunk.modality for chunk in chunks]

    def relate(self, subject: NounPhrase, relation: str, target: NounPhrase, negated: bool) -> None:
        """Add a relation, unless the object is an unresolved pronoun or the image itself."""
        if (target.pronoun and target.named is None) or _is_medium(target, relation):
            return
        negated = negated or subject.negated or target.negated
        first, second = _name(subject), _name(target)
        if negated and relation == "of":
            # "no signs of rain" denies the signs, not the relation.
            self.state(subject)
            self._placed.update((id(subject), id(target)))
            return
        self._placed.update((id(subject), id(target)))
        if first != second:
            self._add(first, relation, second, _span(subject), _span(target), negated)

    def attribute(
        self, subject: NounPhrase, text: str, start: int, end: int, negated: bool
    ) -> None:
        """Add an attribute."""
        self._placed.add(id(subject))
        negated = negated or subject.negated
        self._add(_name(subject), "is", text, _span(subject), Span(start, end), negated)

    def own(self, owner: NounPhrase, phrase: NounPhrase) -> None:
        """Add the possession of "his hat"; the place of the claim's subject is the pronoun's."""
        self._placed.add(id(phrase))
        place = Span(phrase.start, phrase.start + len(phrase.determiner))
        self._add(owner.text, "has", phrase.text, place, _span(phrase), False)

    def state(self, phrase: NounPhrase) -> None:
        """Add that an object is present, unless it belongs to another claim of the sentence."""
        if id(phrase) not in self._placed:
            span = _span(phrase)
            self._add(phrase.text, "is", "present", span, span, phrase.negated)

    def _add(
        self,
        subject: str,
        relation: str,
        target: str,
        subject_span: Span,
        object_span: Span,
        negated: bool,
    ) -> None:
        if negated:
            relation = f"{relation} not" if relation in ("is", "has") else f"not {relation}"
        key = (subject.lower(), relation, target.lower(), subject_span.start, object_span.start)
        if key in self._seen:
            return
        self._seen.add(key)
        self.found.append(
            ExtractedTriplet(
                subject=subject,
                relation=relation,
                object=target,
                start=min(subject_span.start, object_span.start),
                end=max(subject_span.end, object_span.end),
                subject_span=subject_span,
                object_span=object_span,
                negated=negated,
                modality=self._modality(subject_span, object_span),
            )
        )

    def _modality(self, *places: Span) -> Modality:
        """Return how the sentence puts a claim: as its most tentative part."""
        found = {self._modality_at(place.start) for place in places}
        return next((each for each in _MOST_TENTATIVE if each in found), Modality.STATED)

    def _modality_at(self, place: int) -> Modality:
        index = bisect_right(self._starts, place) - 1
        return self._modalities[index] if index >= 0 else Modality.STATED


def said(verb: VerbGroup) -> str:
    """Return a verb as written, with its particle."""
    return f"{verb.text} {verb.particle}" if verb.particle else verb.text


def placed_relation(verb: VerbGroup, prep: str) -> str:
    """Return a verb and its preposition; the preposition alone for "be"."""
    return prep if verb.lemma == "be" else f"{said(verb)} {prep}"


def ing_form(lemma: str) -> str:
    """Return the -ing form of a verb."""
    if lemma.endswith("ie"):
        return f"{lemma[:-2]}ying"
    if lemma.endswith("e") and not lemma.endswith(("ee", "ye", "oe")):
        return f"{lemma[:-1]}ing"
    short = len(lemma) in (3, 4) and lemma[-1] not in _VOWELS and lemma[-1] not in "wxy"
    if short and lemma[-2] in _VOWELS and lemma[-3] not in _VOWELS:
        return f"{lemma}{lemma[-1]}ing"
    return f"{lemma}ing"


def _is_medium(target: NounPhrase, relation: str) -> bool:
    """Return whether the target is the image itself: everything is "in the image"."""
    return (
        target.lemma in MEDIUM_NOUNS
        and target.determiner in ("the", "this", "these")
        and relation.rsplit(" ", 1)[-1] in ("in", "of", "from", "throughout", "within", "across")
    )


def _name(phrase: NounPhrase) -> str:
    return phrase.text if phrase.named is None else phrase.named.text


def _span(phrase: NounPhrase) -> Span:
    return Span(phrase.name_start, phrase.end)
