"""Lookup tables of a graph and of one reference list, for fast keyword matching."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Final, NamedTuple, TypeAlias

from ..graph import SynonymGraph

__all__ = [
    "KeywordTables",
    "Match",
    "ReferenceLayout",
    "count_unique",
    "disjoint",
    "lay_out",
    "match_predictions",
    "tables_of",
]

_NOTHING: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordTables:
    """A graph's links, indexed by keyword and by root."""

    roots: Mapping[str, frozenset[str]]
    """Keyword -> its roots."""
    pairs: Mapping[tuple[str, ...], frozenset[str]]
    """Two consecutive keywords -> the roots of the pair."""
    forms: Mapping[str, tuple[str, ...]]
    """Root -> its keywords."""
    heads: Mapping[str, frozenset[str]]
    """Root -> the first keywords of its pairs."""


def tables_of(graph: SynonymGraph) -> KeywordTables:
    """Return the tables of a graph."""
    roots, pairs = _entries(graph)
    heads = _inverse((first, found) for (first, *_), found in pairs.items())
    return KeywordTables(
        roots=roots,
        pairs=pairs,
        forms=_inverse(roots.items()),
        heads={root: frozenset(found) for root, found in heads.items()},
    )


def _entries(
    graph: SynonymGraph,
) -> tuple[dict[str, frozenset[str]], dict[tuple[str, ...], frozenset[str]]]:
    if not graph.pairs:
        # Every word is its own synonym, so that a list always matches itself.
        return {form: frozenset((form, *roots)) for form, roots in graph.edges}, {}
    singles = {word: frozenset(roots) for word, second, roots in graph.pairs if not second}
    doubles: dict[tuple[str, ...], frozenset[str]] = {
        (word, second): frozenset(roots) for word, second, roots in graph.pairs if second and roots
    }
    return singles, doubles


def _inverse(entries: Iterable[tuple[str, frozenset[str]]]) -> dict[str, tuple[str, ...]]:
    forms: dict[str, list[str]] = {}
    for form, roots in entries:
        for root in roots:
            forms.setdefault(root, []).append(form)
    return {root: tuple(found) for root, found in forms.items()}


class ReferenceLayout(NamedTuple):
    """A reference list prepared for matching.

    A set of places in the list is a bit mask, in which place ``i`` is bit ``i``. One ``&`` finds
    the unmatched keywords that a prediction names, and ``mask & -mask`` the first of them.
    """

    masks: dict[str, int]
    """Prediction -> a mask of three parts, from the lowest bit: the places of the keywords that it
    names; shifted by the list's length, the place of the keyword with its spelling; ``head``."""
    head: int
    """Bit of predictions that may name a keyword together with the next prediction."""
    names: frozenset[str]
    """The predictions that have a mask."""
    heads: frozenset[str]
    """The predictions whose mask has the bit ``head``."""
    size: int
    """How many different keywords there are."""
    unique: bool
    """Whether no keyword is repeated."""
    places: dict[str, int]
    """Keyword -> the mask of its places."""
    keywords: tuple[str, ...]
    """The list in the graph's words."""
    written: tuple[str, ...]
    """Each keyword as it was first given."""


def lay_out(
    keywords: tuple[str, ...], given: tuple[str, ...], tables: KeywordTables, *, pairs: bool
) -> ReferenceLayout:
    """Return the layout of a reference list.

    Args:
        keywords: The list in the graph's words.
        given: The list as it was given.
        tables: The graph's tables.
        pairs: Whether two consecutive predictions may match together.
    """
    places: dict[str, int] = {}
    for place, keyword in enumerate(keywords):
        places[keyword] = places.get(keyword, 0) | 1 << place
    head = 1 << 2 * len(keywords)
    masks: dict[str, int] = {}
    for keyword, bits in places.items():
        for form in tables.forms.get(keyword, ()):
            # Most forms name one keyword: they share its int object, which saves memory.
            masks[form] = masks[form] | bits if form in masks else bits
        masks[keyword] = masks.get(keyword, 0) | (bits & -bits) << len(keywords)
        for first in tables.heads.get(keyword, ()) if pairs else ():
            masks[first] = masks.get(first, 0) | head
    first_given = dict(zip(reversed(keywords), reversed(given), strict=True))
    written = tuple(map(first_given.__getitem__, keywords))
    return ReferenceLayout(
        masks=masks,
        head=head,
        names=frozenset(masks),
        heads=frozenset(form for form, mask in masks.items() if mask >= head),
        size=len(places),
        unique=len(places) == len(keywords),
        places=places,
        keywords=keywords,
        written=written,
    )


Match: TypeAlias = tuple[int, int, int]
"""A right prediction: its place, its width (2 if it matches together with the next one, else 1) and
the place of the keyword that it names. A bare tuple, because there are many of them."""


def match_predictions(
    layout: ReferenceLayout,
    predicted: Sequence[str],
    pairs: Mapping[tuple[str, ...], frozenset[str]],
) -> tuple[list[Match], int]:
    """Return the right predictions, and after how many predictions every keyword is matched.

    Predictions that name no keyword of the reference are never right and are skipped. Every other
    prediction matches the first unmatched keyword that it names.
    """
    masks = [*map(layout.masks.get, predicted)]
    count, length, head = len(masks), len(layout.keywords), layout.head
    # Unmatched keywords, as a mask.
    free = (1 << length) - 1
    end, after = count if free else 0, 0
    found: list[Match] = []
    for index, mask in compress(enumerate(masks), masks):
        if mask is None or index < after:
            continue
        reach = mask
        if mask >= head:
            mask = reach = mask ^ head
            for root in pairs.get(tuple(predicted[index : index + 2]), _NOTHING):
                reach |= layout.places.get(root, 0)
        if left := reach & free:
            bit = left & -left  # the lowest set bit
            free ^= bit
            after = index + (1 if bit & mask else 2)
            found.append((index, after - index, bit.bit_length() - 1))
            if not free:
                end = after
        elif own := mask >> length:
            # No unmatched keyword is left for it, but it is spelt like a keyword and so is right.
            found.append((index, 1, own.bit_length() - 1))
    return found, end


def disjoint(layout: ReferenceLayout, naming: Iterable[str]) -> bool:
    """Return whether no two predictions name the same keyword; their order is then irrelevant."""
    masks, length, seen = layout.masks, len(layout.keywords), 0
    for word in naming:
        mask = masks[word]
        mask |= mask >> length
        if seen & mask:
            return False
        seen |= mask
    return True


def count_unique(length: int, naming: Sequence[int], *, stop: bool) -> tuple[int, int, int | None]:
    """Count what ``match_predictions`` returns, for lists without repeats and pairs.

    Args:
        length: How many keywords the reference list has.
        naming: The masks of the predictions that may be right.
        stop: Whether to stop once every keyword is matched.

    Returns:
        The keywords that were named, the right predictions, and the index of the prediction that
        matched the last keyword (None if it did not stop).
    """
    free, spelt, right = (1 << length) - 1, 0, 0
    for index, mask in enumerate(naming):
        if left := mask & free:
            free ^= left & -left
            right += 1
            if stop and not free:
                return length, right, index
        elif own := mask >> length:
            spelt |= own
            right += 1
    return length - (free & ~spelt).bit_count(), right, None
