"""Claims as they are found: names, spans, negation, each once."""

from __future__ import annotations

from ..values import ExtractedTriplet, Span
from .phrases import NounPhrase, VerbGroup
from .words import MEDIUM_NOUNS

__all__ = ["Claims", "ing_form", "placed_relation", "said"]

_VOWELS = frozenset("aeiou")


class Claims:
    """The claims of one text."""

    def __init__(self) -> None:
        self.found: list[ExtractedTriplet] = []
        self._seen: set[tuple[str, str, str, int, int]] = set()
        self._placed: set[int] = set()

    def next_sentence(self) -> None:
        """Forgets which noun phrases have a place in a claim."""
        self._placed = set()

    def relate(self, subject: NounPhrase, relation: str, target: NounPhrase, negated: bool) -> None:
        """A relation of two things; none where the second is an unknown pronoun or the picture."""
        if (target.pronoun and target.named is None) or _is_medium(target, relation):
            return
        negated = negated or subject.negated or target.negated
        first, second = _name(subject), _name(target)
        if negated and relation == "of":
            # "no signs of rain" denies the signs, not what they are of.
            self.state(subject)
            self._placed.update((id(subject), id(target)))
            return
        self._placed.update((id(subject), id(target)))
        if first != second:
            self._add(first, relation, second, _span(subject), _span(target), negated)

    def attribute(
        self, subject: NounPhrase, text: str, start: int, end: int, negated: bool
    ) -> None:
        """An attribute of a thing."""
        self._placed.add(id(subject))
        negated = negated or subject.negated
        self._add(_name(subject), "is", text, _span(subject), Span(start, end), negated)

    def own(self, owner: NounPhrase, phrase: NounPhrase) -> None:
        """What "his" and its like say: the claim's subject stands at the pronoun."""
        self._placed.add(id(phrase))
        place = Span(phrase.start, phrase.start + len(phrase.determiner))
        self._add(owner.text, "has", phrase.text, place, _span(phrase), False)

    def state(self, phrase: NounPhrase) -> None:
        """That a thing is there, unless another claim of the sentence has it already."""
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
            )
        )


def said(verb: VerbGroup) -> str:
    """The verb as written, with its particle."""
    return f"{verb.text} {verb.particle}" if verb.particle else verb.text


def placed_relation(verb: VerbGroup, prep: str) -> str:
    """Verb and preposition; the preposition alone after "be"."""
    return prep if verb.lemma == "be" else f"{said(verb)} {prep}"


def ing_form(lemma: str) -> str:
    """The -ing form of a verb."""
    if lemma.endswith("ie"):
        return f"{lemma[:-2]}ying"
    if lemma.endswith("e") and not lemma.endswith(("ee", "ye", "oe")):
        return f"{lemma[:-1]}ing"
    short = len(lemma) in (3, 4) and lemma[-1] not in _VOWELS and lemma[-1] not in "wxy"
    if short and lemma[-2] in _VOWELS and lemma[-3] not in _VOWELS:
        return f"{lemma}{lemma[-1]}ing"
    return f"{lemma}ing"


def _is_medium(target: NounPhrase, relation: str) -> bool:
    """Whether the target is the picture itself: everything is "in the image"."""
    return (
        target.lemma in MEDIUM_NOUNS
        and target.determiner in ("the", "this", "these")
        and relation.rsplit(" ", 1)[-1] in ("in", "of", "from", "throughout", "within", "across")
    )


def _name(phrase: NounPhrase) -> str:
    return phrase.text if phrase.named is None else phrase.named.text


def _span(phrase: NounPhrase) -> Span:
    return Span(phrase.name_start, phrase.end)
