"""Matching of keyword lists by a synonym graph, as Mementos does it and corrected."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import compress
from operator import not_
from typing import Final

from .graph import SynonymGraph
from .keyword_lookup import (
    KeywordCounts,
    KeywordMatch,
    KeywordPair,
    KeywordVariant,
    Match,
    Nearness,
    ReferenceLayout,
    ReferenceNotes,
    Spelling,
    count_unique,
    disjoint,
    lay_out,
    match_predictions,
    tables_of,
)

_made: Final = tuple.__new__
"""Builds a named tuple from a tuple without the cost of its constructor."""
_LISTS_KEPT: Final = 1 << 12
_LONGEST_KEPT: Final = 64
"""Longer lists bypass the caches, which keeps them small."""


class KeywordMatcher:
    """Matches predicted keywords with reference keywords by the synonyms of a graph.

    ``published`` is the procedure of the released Mementos script (Wang et al., 2024, section 2.3),
    to the last digit. It processes the predictions in order. Each prediction matches the first
    unmatched reference keyword that is one of the prediction's roots. With ``pairs``, the roots of
    the prediction together with the next one count as well. The script's known bugs are kept:

    * Synonymy is directional: ``couch`` may lead to ``sofa`` but not ``sofa`` to ``couch``. In a
      released graph every reference keyword is a root. In other graphs it need not be, so that
      reference keywords count as their roots there, as in ``corrected``.
    * Matching is greedy: an early prediction may match the only keyword that a later one names.
    * Once every reference keyword is matched, all remaining predictions count as *one* wrong
      prediction, which inflates precision.
    * Entries are compared as written, with blanks and commas (`` pick up``, ``arrange,``).
    * A prediction that the graph does not know is right if it is spelt like a reference keyword,
      but another prediction can still match that keyword.

    ``corrected`` counts every remaining prediction and compares roots on both sides. A reference
    keyword that is not a root counts as its root: of several, the one that a prediction reaches,
    else the first. Words that the graph does not know as written are looked up in normal spelling
    (composed letters, lower case, single blanks, singular). On a released graph, whose roots are
    the reference's own words, only the count of remaining predictions changes.

    A matcher is safe to use from several threads.

    Args:
        graph: The graph.
        variant: ``published`` or ``corrected``.
        pairs: Whether two consecutive predictions may match together. The released script allows
            it for behaviours but not for objects.
    """

    __slots__ = (
        "_corrected",
        "_maps_references",
        "_nearness",
        "_notes",
        "_pairs",
        "_predictions",
        "_references",
        "_spelling",
        "_tables",
        "graph",
        "variant",
    )

    def __init__(self, graph: SynonymGraph, variant: KeywordVariant, *, pairs: bool) -> None:
        self.graph = graph
        """The synonym graph."""
        self.variant = variant
        """``published`` or ``corrected``."""
        self._corrected: Final = variant == "corrected"
        self._maps_references: Final = maps_references(graph, variant)
        self._tables: Final = tables_of(graph)
        self._pairs: Final = pairs
        self._spelling: Final = Spelling(graph, self._tables)
        self._nearness: Final = Nearness(self._spelling, self._tables.roots)
        # A reference list recurs with every model's predictions, and short lists recur often.
        self._references: Final = lru_cache(maxsize=_LISTS_KEPT)(self._reference_of)
        self._predictions: Final = lru_cache(maxsize=_LISTS_KEPT)(self._prediction_of)
        self._notes: Final = lru_cache(maxsize=_LISTS_KEPT)(self._nearness.notes)

    def __repr__(self) -> str:
        """Return the graph's label and the variant."""
        return f"<KeywordMatcher {self.graph.label} {self.variant}>"

    def counts(self, reference: Sequence[str], predicted: Sequence[str]) -> KeywordCounts:
        """Return how many keywords match; faster than ``match``."""
        return self.counts_many([(reference, predicted)])[0]

    def counts_many(
        self, pairs: Iterable[tuple[Sequence[str], Sequence[str]]]
    ) -> list[KeywordCounts]:
        """Return the counts of many pairs of (reference, predicted) lists, in order."""
        reference_of, predicted_of = self._references, self._predictions
        found: list[KeywordCounts] = []
        for given, said in pairs:
            reference, predicted = tuple(given), tuple(said)
            short = len(predicted) <= _LONGEST_KEPT
            words, different = (predicted_of if short else self._prediction_of)(predicted)
            layout = reference_of(reference) if len(reference) <= _LONGEST_KEPT else None
            if layout is None:
                # Long references are laid out each time, as are those whose roots depend on
                # predictions.
                layout = self._layout(reference, words)
            # Only predictions that name a reference keyword can match one, and they are few. All
            # others are wrong, whatever their position.
            naming = layout.names & different
            hits, size = len(naming), layout.size
            plain = len(different) == len(words) and layout.heads.isdisjoint(naming)
            if hits < size and (not hits or (plain and (hits == 1 or disjoint(layout, naming)))):
                # Each names a keyword that no other prediction names, and keywords remain.
                found.append(_made(KeywordCounts, (hits, len(different) - hits, size - hits)))
            elif hits and plain and layout.unique:
                found.append(self._count_unique(layout, words))
            else:
                found.append(self._count_any(layout, words))
        return found

    def _count_unique(self, layout: ReferenceLayout, words: tuple[str, ...]) -> KeywordCounts:
        """Count lists without repeats, where several predictions may name the same keyword."""
        count, size, masks = len(words), layout.size, layout.masks
        naming = [*filter(None, map(masks.get, words))]
        hits, right, last = count_unique(size, naming, stop=not self._corrected)
        if last is None:
            return _made(KeywordCounts, (hits, count - right, size - hits))
        # The released script adds all leftover predictions as one object.
        end = words.index([*filter(masks.__contains__, words)][last]) + 1
        return KeywordCounts(hits, end - right + (end < count), 0)

    def _count_any(self, layout: ReferenceLayout, words: tuple[str, ...]) -> KeywordCounts:
        """Count lists of any kind, including repeats and pairs of predictions."""
        right, end = match_predictions(layout, words, self._tables.pairs)
        hits = len({layout.keywords[place] for _, _, place in right})
        wrong = self._wrong(words, _marks(len(words), right), end)
        return KeywordCounts(hits, wrong, layout.size - hits)

    def match(self, reference: Sequence[str], predicted: Sequence[str]) -> KeywordMatch:
        """Return which keywords match, which do not, and which ones nearly match."""
        given, said = tuple(reference), tuple(predicted)
        short = len(said) <= _LONGEST_KEPT
        words, _ = (self._predictions if short else self._prediction_of)(said)
        layout = self._layout(given, words)
        right, end = match_predictions(layout, words, self._tables.pairs)
        matched, marks, missing = _sides(layout, said, right)
        hits = layout.size - (
            sum(missing) if layout.unique else len({*compress(layout.keywords, missing)})
        )
        hallucinated = tuple(dict.fromkeys(compress(said, marks)))
        # Without another spelling and without leftovers, the counts are those of the lists.
        if words is said and end == len(words):
            wrong = len(hallucinated)
        else:
            wrong = self._wrong(words, marks, end)
        notes = self._notes_of(given)
        unknown = self._spelling.unknown(said)
        parts = (
            _made(KeywordCounts, (hits, wrong, layout.size - hits)),
            tuple(matched),
            hallucinated,
            tuple(dict.fromkeys(compress(given, missing))),
            tuple(sorted({*notes.unknown, *unknown})) if unknown else notes.unknown,
            self._nearness.near(hallucinated, notes, missing),
        )
        return _made(KeywordMatch, parts)

    def _wrong(self, words: tuple[str, ...], marks: bytearray, end: int) -> int:
        """Return how many different predictions count as wrong."""
        if end == len(words) or self._corrected:
            return len({*compress(words, marks)})
        # The released script adds all leftover predictions as one object.
        return len({*compress(words[:end], marks)}) + 1

    def _layout(self, reference: tuple[str, ...], predicted: tuple[str, ...]) -> ReferenceLayout:
        keep = len(reference) <= _LONGEST_KEPT
        layout = (self._references if keep else self._reference_of)(reference)
        if layout is not None:
            return layout
        keywords = self._spelled(reference)
        roots = tuple(self._spelling.as_root(keyword, predicted) for keyword in keywords)
        return lay_out(roots, reference, self._tables, pairs=self._pairs)

    def _spelled(self, reference: tuple[str, ...]) -> tuple[str, ...]:
        """Return reference keywords as written; ``corrected``: in the graph's spelling."""
        return tuple(map(self._spelling.canonical, reference)) if self._corrected else reference

    def _notes_of(self, reference: tuple[str, ...]) -> ReferenceNotes:
        keep = len(reference) <= _LONGEST_KEPT
        return (self._notes if keep else self._nearness.notes)(reference)

    def _prediction_of(self, predicted: tuple[str, ...]) -> tuple[tuple[str, ...], frozenset[str]]:
        """Return predictions as a list and as a set; ``corrected``: in the graph's spelling."""
        words = self._spelling.predictions(predicted) if self._corrected else predicted
        return words, frozenset(words)

    def _reference_of(self, reference: tuple[str, ...]) -> ReferenceLayout | None:
        """Return the layout of a reference; None if some roots depend on the predictions."""
        keywords = self._spelled(reference)
        if self._maps_references:
            if any(map(self._spelling.is_open, keywords)):
                return None
            keywords = tuple(self._spelling.as_root(keyword, ()) for keyword in keywords)
        return lay_out(keywords, reference, self._tables, pairs=self._pairs)


def _marks(count: int, right: Iterable[Match]) -> bytearray:
    """Return 1 for each prediction that is not right and 0 for the others."""
    marks = bytearray(b"\1") * count
    for start, width, _ in right:
        marks[start] = marks[start + width - 1] = 0
    return marks


def _sides(
    layout: ReferenceLayout, said: tuple[str, ...], right: Iterable[Match]
) -> tuple[list[KeywordPair], bytearray, bytearray]:
    """Return matched pairs as given, and marks at unmatched predictions and reference keywords."""
    wrong, missing = bytearray(b"\1") * len(said), bytearray(b"\1") * len(layout.keywords)
    matched: list[KeywordPair] = []
    for start, width, place in right:
        wrong[start] = wrong[start + width - 1] = missing[place] = 0
        word = said[start] if width == 1 else " + ".join(said[start : start + width])
        matched.append(_made(KeywordPair, (word, layout.written[place])))
    # A keyword that repeats is matched once, and none of its places is missed then.
    if matched and not layout.unique:
        named = {layout.keywords[place] for _, _, place in right}
        missing = bytearray(map(not_, map(named.__contains__, layout.keywords)))
    return matched, wrong, missing


def maps_references(graph: SynonymGraph, variant: KeywordVariant) -> bool:
    """Return whether reference keywords are mapped to their roots, as predictions always are.

    ``published`` does not do so with a released graph, whose roots are the reference's own words.

    Args:
        graph: The graph to match by.
        variant: ``published`` or ``corrected``; see ``KeywordMatcher``.
    """
    # Only released graphs have entries as they were written.
    return variant == "corrected" or not graph.pairs


@lru_cache(maxsize=64)
def compile_keywords(
    graph: SynonymGraph, *, variant: KeywordVariant, pairs: bool = False
) -> KeywordMatcher:
    """Return the keyword matcher of a graph and variant, built at the first call.

    Args:
        graph: The graph to match by.
        variant: ``published`` or ``corrected``; see ``KeywordMatcher``.
        pairs: Whether two consecutive predictions may match together, as for behaviours.

    Raises:
        ValueError: The variant is unknown.
    """
    if variant not in ("published", "corrected"):
        raise ValueError(f"unknown variant {variant!r}; use 'published' or 'corrected'")
    return KeywordMatcher(graph, variant, pairs=pairs)
