"""Keywords in the spelling of a graph, and which of them are close to each other."""

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

__all__ = ["MOST_NEAR", "Nearness", "Notes", "Spelling"]

_NOTHING: Final[frozenset[str]] = frozenset()
_WORDS_KEPT: Final = 1 << 16
MOST_NEAR: Final = 1000
"""Long lists that all share a word have as many near misses as pairs of keywords."""


class _Aliases(NamedTuple):
    """How words that are written otherwise are found."""

    spelling: Mapping[str, str]
    """Plain spelling -> the graph's own."""
    roots: frozenset[str]
    """Words that some form leads to."""
    all_roots: Mapping[str, tuple[str, ...]]
    """Form -> its roots in the graph's order."""


class Spelling:
    """Finds words that are written otherwise than in the graph.

    Args:
        graph: The graph.
        tables: Its entries.
    """

    __slots__ = ("_alias", "_roots", "canonical", "known")

    def __init__(self, graph: SynonymGraph, tables: KeywordTables) -> None:
        # Imported here, and not with the first word: that may be looked up in an event loop.
        load_singulars()
        written = (part for word, second, _ in graph.pairs for part in (word, second) if part)
        reached = (*tables.roots.values(), *tables.pairs.values())
        self.known: Final = frozenset(tables.roots).union(written, *reached)
        """The words of the graph."""
        self._roots = tables.roots
        self._alias = _aliases_of(graph, self.known, tables.roots)
        # Words come again and again, with every model and every sequence.
        self.canonical: Final = lru_cache(maxsize=_WORDS_KEPT)(self._canonical_of)
        """The word as the graph writes it; in plain spelling where the graph does not know it."""

    def unknown(self, words: Iterable[str]) -> list[str]:
        """The words that the graph does not know in any spelling."""
        known, canonical = self.known.__contains__, self.canonical
        return [word for word in filterfalse(known, words) if not known(canonical(word))]

    def predictions(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """A list of predictions in the graph's spelling."""
        return words if self.known.issuperset(words) else tuple(map(self.canonical, words))

    def is_open(self, keyword: str) -> bool:
        """Whether the root of a reference keyword depends on the predictions."""
        return keyword not in self._alias.roots and len(self._alias.all_roots.get(keyword, ())) > 1

    def as_root(self, keyword: str, predicted: Sequence[str]) -> str:
        """The root that a reference keyword stands for: of several, one that is predicted."""
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


class Notes(NamedTuple):
    """What evidence needs to know of a reference list."""

    reference: tuple[str, ...]
    """The list as given."""
    having: Mapping[str, int]
    """Feature -> the places of the keywords that have it, as bits."""
    features: frozenset[str]
    """All of them."""
    unknown: tuple[str, ...]
    """Keywords that the graph does not know, sorted."""


class Nearness:
    """Finds wrong predictions and missed keywords that have something in common.

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

    def notes(self, reference: tuple[str, ...]) -> Notes:
        """Work out what evidence needs to know of a reference list."""
        having: dict[str, int] = {}
        for place, keyword in enumerate(reference):
            if reference.index(keyword) == place:
                for feature in self._features(keyword):
                    having[feature] = having.get(feature, 0) | 1 << place
        unknown = tuple(sorted({*self._spelling.unknown(reference)}))
        return Notes(reference, having, frozenset(having), unknown)

    def near(
        self, hallucinated: tuple[str, ...], notes: Notes, missing: bytearray
    ) -> tuple[NearMiss, ...]:
        """The first near misses; ``missing`` marks the reference keywords that are missed."""
        # Most words have nothing in common with the reference, and are not looked at any further.
        apart = map(notes.features.isdisjoint, map(self._features, hallucinated))
        found: list[NearMiss] = []
        for word in compress(hallucinated, map(not_, apart)):
            places = 0
            for feature in notes.features & self._features(word):
                places |= notes.having[feature]
            while places:
                place = (places & -places).bit_length() - 1
                places &= places - 1
                if missing[place] and (miss := self._miss(word, notes.reference[place])):
                    found.append(miss)
                    if len(found) >= MOST_NEAR:
                        return tuple(found)
        return tuple(found)

    def _features_of(self, word: str) -> frozenset[str]:
        """What two words have in common if they are close; words that are not may have it too."""
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
    """A phrase with its last word in the singular."""
    head, _, last = phrase.rpartition(" ")
    # Longer ones are no words, and the rules would go through them two hundred times.
    return phrase if not last or len(phrase) > 256 else f"{head} {singular(last)}".strip()


@lru_cache(maxsize=1 << 16)
def _content(phrase: str) -> frozenset[str]:
    return frozenset(phrase.split()) - SMALL_WORDS
