"""Matching keyword lists by a synonym graph, as Mementos does it and as it was meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import compress
from operator import not_
from typing import Final

from ..graph import SynonymGraph
from .spelling import Nearness, Notes, Spelling
from .tables import Taking, Wanted, apart, tables_of, takings, tallied, wanted_of
from .values import KeywordCounts, KeywordMatch, KeywordPair, KeywordVariant

__all__ = ["KeywordMatcher", "compile_keywords"]

_made: Final = tuple.__new__
"""Makes a named tuple of a tuple, without looking at it once more."""
_LISTS_KEPT: Final = 1 << 12
_LONGEST_KEPT: Final = 64
"""Longer lists are laid out anew each time, so that what is kept stays small."""


class KeywordMatcher:
    """Matches predicted keywords with reference keywords by the synonyms of a graph.

    ``published`` is the procedure of the released Mementos script (Wang et al., 2024, section 2.3),
    to the last digit. Predictions are gone through in order; each takes the first reference keyword
    that is left and is among the roots of the prediction, or (``pairs``) of the prediction and the
    one behind it together. Its slips are kept, since they are in the published numbers:

    * synonymy is directional: ``couch`` may lead to ``sofa`` and not the other way about;
    * it is greedy: an early prediction may take the reference keyword that only a later one names;
    * once all reference keywords are taken, the predictions that are left count as *one* wrong
      prediction together, whatever their number: precision is inflated;
    * entries count as they are written, with blanks and commas (`` pick up``, ``arrange,``);
    * a prediction that the graph does not know still counts as right where it is spelt like a
      reference keyword, but that keyword stays free for another prediction.

    ``corrected`` counts every leftover prediction, and compares roots on both sides: a reference
    keyword that is no root stands for its own root (of several, for the one that a prediction
    reaches, else the first); words that the graph does not know as they are written are looked up
    in one spelling (composed letters, lower case, single blanks, singular). On a released graph,
    whose roots are the reference's own words, nothing but the leftovers changes.

    A matcher is safe to use from several threads.

    Args:
        graph: The graph.
        variant: ``published`` or ``corrected``.
        pairs: Whether two predictions in a row may be read together. The released script does so
            for behaviours, and not for objects.
    """

    __slots__ = (
        "_corrected",
        "_nearness",
        "_notes",
        "_pairs",
        "_said",
        "_spelling",
        "_tables",
        "_wanted",
        "graph",
        "variant",
    )

    def __init__(self, graph: SynonymGraph, variant: KeywordVariant, *, pairs: bool) -> None:
        self.graph = graph
        """The graph it matches by."""
        self.variant = variant
        """The variant it follows."""
        self._corrected: Final = variant == "corrected"
        self._tables: Final = tables_of(graph)
        self._pairs: Final = pairs
        self._spelling: Final = Spelling(graph, self._tables)
        self._nearness: Final = Nearness(self._spelling, self._tables.roots)
        # One reference is met with every model's prediction, and short lists come again.
        self._wanted: Final = lru_cache(maxsize=_LISTS_KEPT)(self._wanted_of)
        self._said: Final = lru_cache(maxsize=_LISTS_KEPT)(self._said_of)
        self._notes: Final = lru_cache(maxsize=_LISTS_KEPT)(self._nearness.notes)

    def __repr__(self) -> str:
        """Show graph and variant."""
        return f"<KeywordMatcher {self.graph.label} {self.variant}>"

    def counts(self, reference: Sequence[str], predicted: Sequence[str]) -> KeywordCounts:
        """Return how many keywords match, and nothing else: the fast way."""
        return self.counts_many([(reference, predicted)])[0]

    def counts_many(
        self, pairs: Iterable[tuple[Sequence[str], Sequence[str]]]
    ) -> list[KeywordCounts]:
        """Return the counts of many pairs of (reference, predicted) lists, in order."""
        lay_out, hear = self._wanted, self._said
        found: list[KeywordCounts] = []
        for given, predicted in pairs:
            reference, said = tuple(given), tuple(predicted)
            words, told = hear(said) if len(said) <= _LONGEST_KEPT else self._said_of(said)
            wanted = lay_out(reference) if len(reference) <= _LONGEST_KEPT else None
            if wanted is None:
                wanted = self._laid_out(reference, words)
            # Only predictions that name a reference keyword can take one, and they are few; the
            # others are wrong wherever they stand.
            naming = wanted.names & told
            hits, size = len(naming), wanted.size
            plain = len(told) == len(words) and wanted.heads.isdisjoint(naming)
            if hits < size and (not hits or (plain and (hits == 1 or apart(wanted, naming)))):
                # Each names a keyword that no other names, and keywords are left.
                found.append(_made(KeywordCounts, (hits, len(told) - hits, size - hits)))
            elif hits and plain and wanted.single:
                found.append(self._contested(wanted, words))
            else:
                found.append(self._walked(wanted, words))
        return found

    def _contested(self, wanted: Wanted, words: tuple[str, ...]) -> KeywordCounts:
        """Count where predictions may take each other's keyword, or the last one."""
        said, size, masks = len(words), wanted.size, wanted.masks
        naming = [*filter(None, map(masks.get, words))]
        hits, right, last = tallied(size, naming, stop=not self._corrected)
        if last is None:
            return _made(KeywordCounts, (hits, said - right, size - hits))
        # The released script adds all leftover predictions as one object.
        end = words.index([*filter(masks.__contains__, words)][last]) + 1
        return KeywordCounts(hits, end - right + (end < said), 0)

    def _walked(self, wanted: Wanted, words: tuple[str, ...]) -> KeywordCounts:
        """Count any lists, also such as say a thing twice, or are read two predictions at once."""
        right, end = takings(wanted, words, self._tables.pairs)
        hits = len({wanted.keywords[place] for _, _, place in right})
        wrong = self._wrong(words, _marks(len(words), right), end)
        return KeywordCounts(hits, wrong, wanted.size - hits)

    def match(self, reference: Sequence[str], predicted: Sequence[str]) -> KeywordMatch:
        """Return which keywords match, which don't, and what they come close to."""
        given, said = tuple(reference), tuple(predicted)
        words, _ = (self._said if len(said) <= _LONGEST_KEPT else self._said_of)(said)
        wanted = self._laid_out(given, words)
        right, end = takings(wanted, words, self._tables.pairs)
        matched, marks, missing = _sides(wanted, said, right)
        hits = wanted.size - (
            sum(missing) if wanted.single else len({*compress(wanted.keywords, missing)})
        )
        hallucinated = tuple(dict.fromkeys(compress(said, marks)))
        if words is said and end == len(words):
            wrong = len(hallucinated)
        else:
            wrong = self._wrong(words, marks, end)
        about = self._noted(given)
        unknown = self._spelling.unknown(said)
        parts = (
            _made(KeywordCounts, (hits, wrong, wanted.size - hits)),
            tuple(matched),
            hallucinated,
            tuple(dict.fromkeys(compress(given, missing))),
            tuple(sorted({*about.unknown, *unknown})) if unknown else about.unknown,
            self._nearness.near(hallucinated, about, missing),
        )
        return _made(KeywordMatch, parts)

    def knows(self, word: str) -> bool:
        """Tell whether the graph knows a keyword, in any spelling."""
        return not self._spelling.unknown((word,))

    def _wrong(self, words: tuple[str, ...], marks: bytearray, end: int) -> int:
        """How many different predictions count as wrong."""
        if end == len(words) or self._corrected:
            return len({*compress(words, marks)})
        # The released script adds all leftover predictions as one object.
        return len({*compress(words[:end], marks)}) + 1

    def _laid_out(self, reference: tuple[str, ...], predicted: tuple[str, ...]) -> Wanted:
        keep = len(reference) <= _LONGEST_KEPT
        wanted = (self._wanted if keep else self._wanted_of)(reference)
        if wanted is not None:
            return wanted
        keywords = map(self._spelling.canonical, reference)
        roots = tuple(self._spelling.as_root(keyword, predicted) for keyword in keywords)
        return wanted_of(roots, reference, self._tables, pairs=self._pairs)

    def _noted(self, reference: tuple[str, ...]) -> Notes:
        keep = len(reference) <= _LONGEST_KEPT
        return (self._notes if keep else self._nearness.notes)(reference)

    def _said_of(self, predicted: tuple[str, ...]) -> tuple[tuple[str, ...], frozenset[str]]:
        """Predictions in the graph's spelling, where the variant asks for it, and as a set."""
        words = self._spelling.predictions(predicted) if self._corrected else predicted
        return words, frozenset(words)

    def _wanted_of(self, reference: tuple[str, ...]) -> Wanted | None:
        """The reference laid out; None: some of its roots depend on the predictions."""
        keywords = reference
        if self._corrected:
            spelling = self._spelling
            keywords = tuple(map(spelling.canonical, reference))
            if any(map(spelling.is_open, keywords)):
                return None
            keywords = tuple(spelling.as_root(keyword, ()) for keyword in keywords)
        return wanted_of(keywords, reference, self._tables, pairs=self._pairs)


def _marks(count: int, right: Iterable[Taking]) -> bytearray:
    """A mark at each prediction, but at those that are right."""
    marks = bytearray(b"\1") * count
    for start, width, _ in right:
        marks[start] = marks[start + width - 1] = 0
    return marks


def _sides(
    wanted: Wanted, said: tuple[str, ...], right: Iterable[Taking]
) -> tuple[list[KeywordPair], bytearray, bytearray]:
    """Pairs as they were given, and marks at what has no pair: predictions, reference keywords."""
    wrong, missing = bytearray(b"\1") * len(said), bytearray(b"\1") * len(wanted.keywords)
    matched: list[KeywordPair] = []
    for start, width, place in right:
        wrong[start] = wrong[start + width - 1] = missing[place] = 0
        word = said[start] if width == 1 else " + ".join(said[start : start + width])
        matched.append(_made(KeywordPair, (word, wanted.written[place])))
    if matched and not wanted.single:
        named = {wanted.keywords[place] for _, _, place in right}
        missing = bytearray(map(not_, map(named.__contains__, wanted.keywords)))
    return matched, wrong, missing


@lru_cache(maxsize=64)
def compile_keywords(
    graph: SynonymGraph, *, variant: KeywordVariant, pairs: bool = False
) -> KeywordMatcher:
    """Make a matcher, or return the one made before for the same graph and variant.

    Args:
        graph: The graph to match by.
        variant: ``published`` or ``corrected``; see ``KeywordMatcher``.
        pairs: Whether two predictions in a row may be read together, as for behaviours.

    Raises:
        ValueError: There is no such variant.
    """
    if variant not in ("published", "corrected"):
        raise ValueError(f"unknown variant {variant!r}; use 'published' or 'corrected'")
    return KeywordMatcher(graph, variant, pairs=pairs)
