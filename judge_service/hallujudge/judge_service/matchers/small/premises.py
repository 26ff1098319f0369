"""Scene graphs in words, and premises that a model can read whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hallujudge.metrics.framework.claims import Triplet

from ..texts import plain, reference_sentence
from ..values import ClaimQuery

__all__ = ["WORDING", "Fact", "Premise", "Room", "cut_to_fit", "facts_of", "hypothesis", "packed"]

WORDING = "words-1"
"""The version of the template that puts scene graphs into words, for signatures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A sentence of a premise."""

    text: str
    """The sentence."""
    position: int | None
    """The position of the reference triplet that it states; None: it states an object."""
    is_cut: bool = False
    """Whether its end was cut off, because it is too long for the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Premise:
    """A text that may support a claim."""

    facts: tuple[Fact, ...]
    """Its sentences."""

    @property
    def text(self) -> str:
        """The sentences with blanks between them."""
        return " ".join(fact.text for fact in self.facts)

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions of the reference triplets that it states."""
        return tuple(fact.position for fact in self.facts if fact.position is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How long a premise may be."""

    tokens: int
    """In tokens."""
    chunk: int = 0
    """In the unit of the preset; 0: only tokens count."""


def hypothesis(claim: Sequence[str]) -> str:
    """Return a claim as a sentence: its parts joined by blanks, with a final full stop."""
    text = plain(" ".join(claim)).strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


def facts_of(
    query: ClaimQuery, retained: Iterable[int] | None = None, *, characters: int
) -> list[Fact]:
    """Return the references of a claim in words, each sentence once.

    A triplet becomes ``SUBJECT RELATION OBJECT.``, and an object that no triplet names becomes
    ``There is OBJECT.``

    Args:
        query: The claim with its references.
        retained: The positions of the only triplets to state; None: all triplets and objects.
        characters: The maximum length of a sentence, which is cut there.
    """
    references = query.references or ()
    chosen = range(len(references)) if retained is None else sorted(retained)
    sentences: dict[str, int | None] = {}
    for position in chosen:
        sentences.setdefault(reference_sentence(references[position]), position)
    for name in () if retained is not None else _unnamed(query.objects, references):
        sentences.setdefault(f"There is {name}.", None)
    return [
        Fact(text=text[:characters], position=position, is_cut=len(text) > characters)
        for text, position in sentences.items()
    ]


def _unnamed(objects: Sequence[str], references: Sequence[Triplet]) -> Iterator[str]:
    named = {end.casefold() for triplet in references for end in (triplet[0], triplet[2])}
    return (plain(name) for name in objects if name.casefold() not in named)


def packed(
    facts: Sequence[Fact], tokens: Mapping[str, int], units: Mapping[str, int], room: Room
) -> list[Premise]:
    """Return premises of consecutive sentences, each as long as possible.

    Args:
        facts: The sentences.
        tokens: The number of tokens of each sentence.
        units: The length of each sentence in the unit of ``room.chunk``.
        room: The maximum length of a premise. A longer sentence is a premise by itself.
    """
    pieces: list[list[Fact]] = []
    used = filled = 0
    for fact in facts:
        size, unit = tokens[fact.text], units[fact.text]
        full = used + size > room.tokens or (room.chunk and filled + unit > room.chunk)
        if not pieces or full:
            pieces.append([])
            used = filled = 0
        pieces[-1].append(fact)
        used, filled = used + size, filled + unit
    return [Premise(facts=tuple(piece)) for piece in pieces]


def cut_to_fit(premise: Premise, fits: Callable[[str], bool]) -> list[Premise]:
    """Return a premise that is too long in parts that fit: split between sentences, or else cut.

    Args:
        premise: A premise that does not fit.
        fits: Whether a text fits.
    """
    if len(premise.facts) > 1:
        middle = len(premise.facts) // 2
        halves = (premise.facts[:middle], premise.facts[middle:])
        parts = [Premise(facts=half) for half in halves]
        return [
            p for part in parts for p in ([part] if fits(part.text) else cut_to_fit(part, fits))
        ]
    (fact,) = premise.facts
    low, high = 0, len(fact.text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(fact.text[:middle]) else (low, middle - 1)
    if not (text := fact.text[:low].strip()):
        return []
    return [Premise(facts=(Fact(text=text, position=fact.position, is_cut=True),))]
