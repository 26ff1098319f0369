"""Lookup of keywords in a graph's spelling, and near misses between keyword lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import compress, filterfalse
from operator import not_
from typing import Final, NamedTuple

from ..graph import SynonymGraph
from ..singular import load_singulars, singular
from ..words import SMALL_WORDS, clean_word
from .tables import KeywordTables
from .values import NearMiss

__all__ = ["MOST_NEAR", "Nearness", "ReferenceNotes", "Spelling"]

_NOTHING: Final[frozenset[str]] = frozenset()
_WORDS_KEPT: Final = 1 << 16
MOST_NEAR: Final = 1000
"""Upper limit of reported near misses: in long lists that share a word every pair is one."""


class _Aliases(NamedTuple):
    """Tables for words that are not written as in the graph."""

    spelling: Mapping[str, str]
    """Normal spelling -> the graph's spelling."""
    roots: frozenset[str]
    """Roots of the graph."""
    all_roots: Mapping[str, tuple[str, ...]]
    """Form -> its roots in the graph's order."""


class Spelling:
    """Finds the graph's spelling of words that are written differently.

    Args:
        graph: The graph.
        tables: The graph's tables.
    """

    __slots__ = ("_alias", "_roots", "canonical", "known")

    def __init__(self, graph: SynonymGraph, tables: KeywordTables) -> None:
        # Imported here because the first lookup may run in an event loop.
        load_singulars()
        written = (part for word, second, _ in graph.pairs for part in (word, second) if part)
        reached = (*tables.roots.values(), *tables.pairs.values())
        self.known: Final = frozenset(tables.roots).union(written, *reached)
        """The words of the graph."""
        self._roots = tables.roots
        self._alias = _aliases_of(graph, self.known, tables.roots)
        # Words recur with every model and every sequence.
        self.canonical: Final = lru_cache(maxsize=_WORDS_KEPT)(self._canonical_of)
        """Returns a word in the graph's spelling; in normal spelling if the graph lacks it."""

    def unknown(self, words: Iterable[str]) -> list[str]:
        """Return the words that the graph does not know in any spelling."""
        known, canonical = self.known.__contains__, self.canonical
        return [word for word in filterfalse(known, words) if not known(canonical(word))]

    def predictions(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """Return predictions in the graph's spelling."""
        return words if self.known.issuperset(words) else tuple(map(self.canonical, words))

    def is_open(self, keyword: str) -> bool:
        """Return whether the root of a reference keyword depends on the predictions."""
        return keyword not in self._alias.roots and len(self._alias.all_roots.get(keyword, ())) > 1

    def as_root(self, keyword: str, predicted: Sequence[str]) -> str:
        """Return the root of a reference keyword; of several, the first that is predicted."""
        roots = self._alias.all_roots.get(keyword, ())
        if keyword in self._alias.roots or not roots:
            return keyword
        if len(roots) > 1:
            reached = _NOTHING.union(*(self._roots.get(w, _NOTHING) for w in predicted))
            for root in roots:
                if root in reached:
                    return root
        return roots[0]

    def _canonical_of(self, word: str) -> str:
        if word in self.known:
            return word
        plain = clean_word(word)
        if (known := self._alias.spelling.get(plain)) is not None:
            return known
        return self._alias.spelling.get(_singular_phrase(plain), plain)


class ReferenceNotes(NamedTuple):
    """Features of a reference list, by which near misses are found."""

    reference: tuple[str, ...]
    """The list as given."""
    places: Mapping[str, int]
    """Feature -> the places of the keywords that have it, as a bit mask."""
    features: frozenset[str]
    """All features."""
    unknown: tuple[str, ...]
    """Keywords that the graph does not know, sorted."""


class Nearness:
    """Finds near misses between wrong predictions and missed keywords.

    Args:
        spelling: The graph's spelling.
        roots: Form -> the roots that it leads to.
    """

    __slots__ = ("_canonical", "_features", "_miss", "_roots", "_spelling")

    def __init__(self, spelling: Spelling, roots: Mapping[str, frozenset[str]]) -> None:
        self._spelling = spelling
        self._canonical = spelling.canonical
        self._roots = roots
        self._features = lru_cache(maxsize=_WORDS_KEPT)(self._features_of)
        self._miss = lru_cache(maxsize=_WORDS_KEPT)(self._miss_of)

    def notes(self, reference: tuple[str, ...]) -> ReferenceNotes:
        """Return the features of a reference list."""
        places: dict[str, int] = {}
        for place, keyword in enumerate(reference):
            if reference.index(keyword) == place:
                for feature in self._features(keyword):
                    places[feature] = places.get(feature, 0) | 1 << place
        unknown = tuple(sorted({*self._spelling.unknown(reference)}))
        return ReferenceNotes(reference, places, frozenset(places), unknown)

    def near(
        self, hallucinated: tuple[str, ...], notes: ReferenceNotes, missing: bytearray
    ) -> tuple[NearMiss, ...]:
        """Return the first near misses.

        Args:
            hallucinated: The wrong predictions.
            notes: The features of the reference list.
            missing: A non-zero byte for each reference keyword that is missed.
        """
        # Most words share no feature with the reference and need no further comparison.
        unrelated = map(notes.features.isdisjoint, map(self._features, hallucinated))
        found: list[NearMiss] = []
        for word in compress(hallucinated, map(not_, unrelated)):
            places = 0
            for feature in notes.features & self._features(word):
                places |= notes.places[feature]
            # Visit the set bits from the lowest one; ``places & (places - 1)`` clears it.
            while places:
                place = (places & -places).bit_length() - 1
                places &= places - 1
                if missing[place] and (miss := self._miss(word, notes.reference[place])):
                    found.append(miss)
                    if len(found) >= MOST_NEAR:
                        return tuple(found)
        return tuple(found)

    def _features_of(self, word: str) -> frozenset[str]:
        """Return the features of a word; near misses share one, and so may other words."""
        one = self._canonical(word)
        spelt = _singular_phrase(clean_word(word))
        return _content(one).union((one, spelt), self._roots.get(one, _NOTHING))

    def _miss_of(self, word: str, keyword: str) -> NearMiss | None:
        why = self._why(word, keyword)
        return NearMiss(word, keyword, why) if why else None

    def _why(self, word: str, keyword: str) -> str:
        one, other = self._canonical(word), self._canonical(keyword)
        if one == other or _singular_phrase(clean_word(word)) == _singular_phrase(
            clean_word(keyword)
        ):
            return "spelling"
        mine, theirs = self._roots.get(one, _NOTHING), self._roots.get(other, _NOTHING)
        if one in theirs:
            return "direction"
        if not mine.isdisjoint(theirs):
            return "root"
        return "word" if _content(one) & _content(other) else ""


def _aliases_of(
    graph: SynonymGraph, known: frozenset[str], singles: Mapping[str, frozenset[str]]
) -> _Aliases:
    spelling: dict[str, str] = {}
    # Forms before bare roots, and shorter spellings first: " pick up" must not hide "pick up".
    for word in sorted(known, key=lambda word: (word not in singles, len(word), word)):
        spelling.setdefault(clean_word(word), word)
    released = (root for _, second, found in graph.pairs if not second for root in found)
    roots = frozenset(released if graph.pairs else graph.roots)
    entries = ((w, r) for w, second, r in graph.pairs if not second) if graph.pairs else graph.edges
    return _Aliases(spelling, roots, {form: found for form, found in entries if found})


def _singular_phrase(phrase: str) -> str:
    """Return a phrase with its last word in the singular."""
    head, _, last = phrase.rpartition(" ")
    # Longer phrases are not keywords, and each of about two hundred rules would scan them.
    return phrase if not last or len(phrase) > 256 else f"{head} {singular(last)}".strip()


@lru_cache(maxsize=1 << 16)
def _content(phrase: str) -> frozenset[str]:
    return frozenset(phrase.split()) - SMALL_WORDS
