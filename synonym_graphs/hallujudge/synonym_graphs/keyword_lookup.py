"""Lookup of keywords in graphs and reference lists: spellings, near misses, results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import compress, filterfalse
from operator import not_
from typing import Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from .graph import SynonymGraph
from .word_forms import SMALL_WORDS, clean_word, singular, textblob_inflect

KeywordVariant: TypeAlias = Literal["published", "corrected"]


class KeywordCounts(NamedTuple):
    """How many different keywords of two lists match."""

    hits: int
    """Reference keywords that a prediction names (true positives)."""
    wrong: int
    """Predictions that name no reference keyword (false positives)."""
    missed: int
    """Reference keywords that no prediction names (false negatives)."""


class KeywordPair(NamedTuple):
    """A prediction and the reference keyword that it names."""

    predicted: str
    """The prediction as given; two that match together are joined by ``+``."""
    reference: str
    """The reference keyword as given."""


class NearMiss(NamedTuple):
    """A wrong prediction and a missed reference keyword that are close, but not synonyms."""

    predicted: str
    """The prediction."""
    reference: str
    """The reference keyword."""
    why: str
    """``spelling`` (the same word in two spellings), ``direction`` (the graph leads only from the
    reference to the prediction), ``root`` (they have a common root) or ``word`` (they share a
    word)."""


class KeywordMatch(NamedTuple):
    """The result of matching two keyword lists."""

    counts: KeywordCounts
    """The counts that scores are computed from."""
    matched: tuple[KeywordPair, ...]
    """Predictions that name a reference keyword, in order."""
    hallucinated: tuple[str, ...]
    """Different predictions that name no reference keyword, in order."""
    missed: tuple[str, ...]
    """Different reference keywords that no prediction names, in order."""
    unknown: tuple[str, ...]
    """Keywords of either list that the graph does not know, sorted."""
    near: tuple[NearMiss, ...]
    """The first 1,000 near misses, in the order of the predictions and then of the reference."""


_NOTHING: Final[frozenset[str]] = frozenset()


class KeywordTables(Struct, frozen=True, kw_only=True):
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
    # Below it are bits of places and of spellings: one number holds all three.
    head = 1 << 2 * len(keywords)
    masks: dict[str, int] = {}
    for keyword, bits in places.items():
        for form in tables.forms.get(keyword, ()):
            # Most forms name one keyword: they share its int object, which saves memory.
            masks[form] = masks[form] | bits if form in masks else bits
        # A keyword that repeats is right by its spelling at its first place.
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
            # Their keywords count as found, though no prediction is left to match them.
            spelt |= own
            right += 1
    return length - (free & ~spelt).bit_count(), right, None


# Bounds the memory of a server that reads ever new words.
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
        textblob_inflect()
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
