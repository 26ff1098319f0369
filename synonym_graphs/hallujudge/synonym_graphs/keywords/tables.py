"""What a graph says about keywords and about one reference list, laid out for matching."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Final, NamedTuple, TypeAlias

from ..graph import SynonymGraph

__all__ = [
    "KeywordTables",
    "Taking",
    "Wanted",
    "apart",
    "tables_of",
    "takings",
    "tallied",
    "wanted_of",
]

_NOTHING: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordTables:
    """A graph's entries, found by either end."""

    roots: Mapping[str, frozenset[str]]
    """Keyword -> the roots that it leads to."""
    pairs: Mapping[tuple[str, ...], frozenset[str]]
    """Two keywords in a row -> the roots that they lead to together."""
    forms: Mapping[str, tuple[str, ...]]
    """Root -> the keywords that lead to it."""
    heads: Mapping[str, frozenset[str]]
    """Root -> the first keywords of the pairs that lead to it."""


def tables_of(graph: SynonymGraph) -> KeywordTables:
    """The tables of a graph."""
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
        # A word always stands for itself too, so that a list matches itself whatever its words.
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


class Wanted(NamedTuple):
    """What predictions can take of one reference list, worked out beforehand.

    Places of the list are bits of a number, so that one operation says which of the keywords that a
    prediction names are left, and one more which of them comes first.
    """

    masks: dict[str, int]
    """Prediction -> the places of the keywords that it names; above them, shifted by the length of
    the list, the place of the keyword that is spelt like it; above both the bit ``head``."""
    head: int
    """Bit that says that a prediction and the one behind it may name a keyword together."""
    names: frozenset[str]
    """All of these predictions."""
    heads: frozenset[str]
    """Those of them that are marked so."""
    size: int
    """How many different keywords there are."""
    single: bool
    """Whether none comes twice."""
    places: dict[str, int]
    """Keyword -> its places."""
    keywords: tuple[str, ...]
    """The list."""
    written: tuple[str, ...]
    """Each of them as it was given first."""


def wanted_of(
    keywords: tuple[str, ...], given: tuple[str, ...], tables: KeywordTables, *, pairs: bool
) -> Wanted:
    """Lay out a reference list, in the graph's words and as it was given."""
    places: dict[str, int] = {}
    for place, keyword in enumerate(keywords):
        places[keyword] = places.get(keyword, 0) | 1 << place
    head = 1 << 2 * len(keywords)
    masks: dict[str, int] = {}
    for keyword, bits in places.items():
        for form in tables.forms.get(keyword, ()):
            # Most forms lead to one keyword of a list: they share one number, which takes no room.
            masks[form] = masks[form] | bits if form in masks else bits
        masks[keyword] = masks.get(keyword, 0) | (bits & -bits) << len(keywords)
        for first in tables.heads.get(keyword, ()) if pairs else ():
            masks[first] = masks.get(first, 0) | head
    first_given = dict(zip(reversed(keywords), reversed(given), strict=True))
    written = tuple(map(first_given.__getitem__, keywords))
    return Wanted(
        masks=masks,
        head=head,
        names=frozenset(masks),
        heads=frozenset(form for form, mask in masks.items() if mask >= head),
        size=len(places),
        single=len(places) == len(keywords),
        places=places,
        keywords=keywords,
        written=written,
    )


Taking: TypeAlias = tuple[int, int, int]
"""A prediction that is right: where it stands, 2 if it is read together with the next one (else 1),
and the place of the keyword that it names. A bare tuple, since there are so many of them."""


def takings(
    wanted: Wanted, predicted: Sequence[str], pairs: Mapping[tuple[str, ...], frozenset[str]]
) -> tuple[list[Taking], int]:
    """Which predictions are right, and after how many nothing is left to take.

    Predictions that lead to no keyword of the reference can't be right, wherever they stand, and
    are skipped; all others take the first keyword that is left.
    """
    masks = [*map(wanted.masks.get, predicted)]
    count, length, head = len(masks), len(wanted.keywords), wanted.head
    free = (1 << length) - 1
    end, after = count if free else 0, 0
    found: list[Taking] = []
    for index, mask in compress(enumerate(masks), masks):
        if mask is None or index < after:
            continue
        reach = mask
        if mask >= head:
            mask = reach = mask ^ head
            for root in pairs.get(tuple(predicted[index : index + 2]), _NOTHING):
                reach |= wanted.places.get(root, 0)
        if left := reach & free:
            bit = left & -left
            free ^= bit
            after = index + (1 if bit & mask else 2)
            found.append((index, after - index, bit.bit_length() - 1))
            if not free:
                end = after
        elif own := mask >> length:
            # No synonym of the graph's, or too late, but spelt like a keyword: right all the same.
            found.append((index, 1, own.bit_length() - 1))
    return found, end


def apart(wanted: Wanted, naming: Iterable[str]) -> bool:
    """Whether no two predictions name the same keyword, so that their order does not matter."""
    masks, length, seen = wanted.masks, len(wanted.keywords), 0
    for word in naming:
        mask = masks[word]
        mask |= mask >> length
        if seen & mask:
            return False
        seen |= mask
    return True


def tallied(length: int, naming: Sequence[int], *, stop: bool) -> tuple[int, int, int | None]:
    """What ``takings`` come to: keywords named, predictions that are right, which took the last.

    Only where neither list says a thing twice and no two predictions are read together.

    Args:
        length: How many keywords the reference list has.
        naming: The masks of the predictions that may be right.
        stop: Whether to look no further, and to say so, once nothing is left to take.
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
