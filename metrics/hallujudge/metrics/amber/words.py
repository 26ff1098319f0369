"""Objects and hallucination targets that the words of a description name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, islice
from typing import NamedTuple, TypeAlias

from .evidence import AmberEvidence, AmberWord
from .items import AmberItem, AmberObject

__all__ = ["DescriptionCounts", "Similar", "count_words"]


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


Similar: TypeAlias = Callable[[str, str], bool]
"""Whether two words that differ are taken to be the same."""


def count_words(
    item: AmberItem, variant: str, similar: Similar | None = None
) -> tuple[DescriptionCounts, AmberEvidence]:
    """Return the counts of a description, and its evidence.

    Args:
        item: The description, with its nouns.
        variant: ``published`` or ``corrected``.
        similar: Compares words that differ; None: words are the same or not.
    """
    published = variant == "published"
    objects = item.objects if published else _distinct(item.objects)
    targets = item.targets if published else _distinct(item.targets)
    verdicts = _verdicts(item, similar)
    wrong = [noun for noun, verdict in zip(item.nouns, verdicts, strict=True) if verdict == _WRONG]
    true, safe = _words_of(item.objects), frozenset(item.safe_words)
    # Words of which equality does not say that they are true.
    unknown = [noun for noun in item.nouns if noun not in true and noun not in safe]
    credited = [noun for noun in item.nouns if not published or noun not in safe]
    # The released script looks for targets before it compares a word with the true ones by vectors.
    suspects = unknown if published else wrong
    find = _first_named if published else _all_named
    covered = find(objects, credited) | _similar_to(objects, unknown, similar, first=published)
    said = find(targets, suspects) | _similar_to(targets, suspects, similar, first=published)
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


def _verdicts(item: AmberItem, similar: Similar | None) -> list[str]:
    true, safe = _words_of(item.objects), frozenset(item.safe_words)

    def is_true(noun: str) -> bool:
        return noun in true or (similar is not None and any(similar(noun, word) for word in true))

    return ["safe" if noun in safe else "true" if is_true(noun) else _WRONG for noun in item.nouns]


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


def _similar_to(
    objects: Sequence[AmberObject], nouns: Sequence[str], similar: Similar | None, *, first: bool
) -> frozenset[int]:
    """Return the objects that words are similar to.

    Args:
        objects: The objects.
        nouns: The words.
        similar: Compares words; None: nothing is similar.
        first: Whether a word stands for one object only, as in the released script: the first with
            a similar associated word, or else the first with a similar name.
    """
    if similar is None:
        return frozenset()
    found: set[int] = set()
    for noun in frozenset(nouns):
        by_table = (
            index
            for index, entry in enumerate(objects)
            if any(similar(noun, word) for word in entry.associated)
        )
        by_name = (index for index, entry in enumerate(objects) if similar(noun, entry.word))
        named = chain(by_table, by_name)
        found.update(islice(named, 1) if first else named)
    return frozenset(found)


def _names(objects: Sequence[AmberObject], which: frozenset[int]) -> tuple[str, ...]:
    return tuple(objects[index].word for index in sorted(which))
