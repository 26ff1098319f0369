"""Objects and hallucination targets that the words of a description name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .evidence import AmberEvidence, AmberWord
from .items import AmberItem, AmberObject

__all__ = ["DescriptionCounts", "count_words"]


class DescriptionCounts(NamedTuple):
    """Counts of one description for the generative scores."""

    words: int
    """Object words."""
    hallucinated: int
    """Object words that are hallucinated."""
    objects: int
    """Objects of the image."""
    covered: int
    """Objects of the image that the description names."""
    targets: int
    """Hallucination targets."""
    targets_said: int
    """Hallucination targets that the description names."""


def count_words(item: AmberItem, variant: str) -> tuple[DescriptionCounts, AmberEvidence]:
    """Return the counts of a description, and its evidence.

    Args:
        item: The description, with its nouns.
        variant: ``published`` or ``corrected``.
    """
    find = _first_named if variant == "published" else _all_named
    objects = item.objects if variant == "published" else _distinct(item.objects)
    targets = item.targets if variant == "published" else _distinct(item.targets)
    true, safe = _words_of(item.objects), frozenset(item.safe_words)
    verdicts = [_verdict(noun, true, safe) for noun in item.nouns]
    wrong = [noun for noun, verdict in zip(item.nouns, verdicts, strict=True) if verdict == _WRONG]
    credited = [n for n in item.nouns if variant == "corrected" or n not in safe]
    covered, said = find(objects, credited), find(targets, wrong)
    counts = DescriptionCounts(
        words=len(item.nouns),
        hallucinated=len(wrong),
        objects=len(objects),
        covered=len(covered),
        targets=len(targets),
        targets_said=len(said),
    )
    evidence = AmberEvidence(
        words=tuple(map(AmberWord, item.nouns, verdicts)),
        covered=_names(objects, covered),
        missed=_names(objects, frozenset(range(len(objects))) - covered),
        targets_said=_names(targets, said),
    )
    return counts, evidence


_WRONG = "hallucinated"


def _verdict(noun: str, true: frozenset[str], safe: frozenset[str]) -> str:
    return "safe" if noun in safe else "true" if noun in true else _WRONG


def _words_of(objects: Sequence[AmberObject]) -> frozenset[str]:
    return frozenset(word for entry in objects for word in (entry.word, *entry.associated))


def _distinct(objects: Sequence[AmberObject]) -> tuple[AmberObject, ...]:
    return tuple({entry.word: entry for entry in objects}.values())


def _first_named(objects: Sequence[AmberObject], nouns: Sequence[str]) -> frozenset[int]:
    """Return the objects that words stand for in the released script.

    A word stands for one object: the first that it is associated with, or else the first that it
    names.
    """
    first: dict[str, int] = {}
    for index, entry in enumerate(objects):
        for word in entry.associated:
            first.setdefault(word, index)
    for index, entry in enumerate(objects):
        first.setdefault(entry.word, index)
    return frozenset(first[noun] for noun in nouns if noun in first)


def _all_named(objects: Sequence[AmberObject], nouns: Sequence[str]) -> frozenset[int]:
    """Return every object that a word names or is associated with."""
    said = frozenset(nouns)
    return frozenset(
        index
        for index, entry in enumerate(objects)
        if entry.word in said or not said.isdisjoint(entry.associated)
    )


def _names(objects: Sequence[AmberObject], which: frozenset[int]) -> tuple[str, ...]:
    return tuple(objects[index].word for index in sorted(which))
