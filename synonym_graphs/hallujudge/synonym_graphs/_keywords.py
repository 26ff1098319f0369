"""Matching keyword lists by a synonym graph, as Mementos does it and as it was meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias

from ._graph import SynonymGraph
from ._keyword_tables import (
    UNCLEAR,
    WALKED,
    Plan,
    aliases_of,
    inverse,
    plan_of,
    singular_phrase,
    tables_of,
    takings,
)
from ._words import SMALL_WORDS, clean_word

__all__ = [
    "KeywordCounts",
    "KeywordMatch",
    "KeywordMatcher",
    "KeywordPair",
    "KeywordReading",
    "NearMiss",
    "compile_keywords",
]

KeywordReading: TypeAlias = Literal["published", "corrected"]

_NOTHING: Final[frozenset[str]] = frozenset()
_ONE_LEFTOVER: Final = object()
"""What the released script adds for all leftover predictions together: one object."""
_WORDS_KEPT: Final = 1 << 16
_LISTS_KEPT: Final = 1 << 12


class KeywordCounts(NamedTuple):
    """How many different keywords of two lists match."""

    hits: int
    """Reference keywords that a prediction names (true positives)."""
    wrong: int
    """Predictions that name none (false positives)."""
    missed: int
    """Reference keywords that no prediction names (false negatives)."""


class KeywordPair(NamedTuple):
    """A prediction and the reference keyword that it names."""

    predicted: str
    """The prediction as given; two, joined by ``+``, where the graph reads them together."""
    reference: str
    """The reference keyword as given."""


class NearMiss(NamedTuple):
    """A wrong prediction and a missed reference keyword that are close, but not synonyms."""

    predicted: str
    """The prediction."""
    reference: str
    """The reference keyword."""
    why: str
    """``spelling`` (one word, spelt two ways), ``direction`` (the graph leads from the reference to
    the prediction only), ``root`` (both lead to one root), ``word`` (they share a word)."""


class KeywordMatch(NamedTuple):
    """Two keyword lists, matched."""

    counts: KeywordCounts
    """What scores are made of."""
    matched: tuple[KeywordPair, ...]
    """Predictions that name a reference keyword, in order."""
    hallucinated: tuple[str, ...]
    """Different predictions that name none, in order."""
    missed: tuple[str, ...]
    """Different reference keywords that no prediction names, in order."""
    unknown: tuple[str, ...]
    """Keywords of either list that the graph does not know, sorted."""
    near: tuple[NearMiss, ...]
    """Near misses."""


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
        reading: ``published`` or ``corrected``.
        pairs: Whether two predictions in a row may be read together. The released script does so
            for behaviours, and not for objects.
    """

    __slots__ = (
        "_alias",
        "_as_predicted",
        "_as_reference",
        "_canonical",
        "_features",
        "_forms",
        "_heads",
        "_known",
        "_pairs",
        "_plan",
        "_roots",
        "graph",
        "reading",
    )

    def __init__(self, graph: SynonymGraph, reading: KeywordReading, *, pairs: bool) -> None:
        self.graph = graph
        """The graph it matches by."""
        self.reading = reading
        """The reading it follows."""
        singles, doubles = tables_of(graph)
        self._roots: Final[Mapping[str, frozenset[str]]] = singles
        self._pairs: Final[Mapping[tuple[str, str], frozenset[str]]] = doubles if pairs else {}
        self._heads: Final = frozenset(first for first, _ in self._pairs)
        written = (part for word, second, _ in graph.pairs for part in (word, second) if part)
        self._known: Final = frozenset(singles).union(written, *singles.values(), *doubles.values())
        self._alias: Final = aliases_of(graph, self._known, singles)
        self._forms: Final = inverse(singles)
        # One reference is met with every model's prediction, and words come again and again.
        self._canonical = lru_cache(maxsize=_WORDS_KEPT)(self._canonical_of)
        self._features = lru_cache(maxsize=_WORDS_KEPT)(self._features_of)
        self._plan = lru_cache(maxsize=_LISTS_KEPT)(self._plan_of)
        self._as_predicted = lru_cache(maxsize=_LISTS_KEPT)(self._predicted_of)
        self._as_reference = lru_cache(maxsize=_LISTS_KEPT)(self._reference_of)

    def __repr__(self) -> str:
        """Show graph and reading."""
        return f"<KeywordMatcher {self.graph.label} {self.reading}>"

    def counts(self, reference: Sequence[str], predicted: Sequence[str]) -> KeywordCounts:
        """Return how many keywords match, and nothing else: the fast way."""
        return self.counts_many([(reference, predicted)])[0]

    def counts_many(
        self, pairs: Iterable[tuple[Sequence[str], Sequence[str]]]
    ) -> list[KeywordCounts]:
        """Return the counts of many pairs of (reference, predicted) lists, in order."""
        plan_of, made = self._plan, KeywordCounts._make
        corrected = self.reading == "corrected"
        found: list[KeywordCounts] = []
        for given_reference, given_predicted in pairs:
            reference, predicted = tuple(given_reference), tuple(given_predicted)
            if corrected:
                reference, predicted = self._canonical_lists(reference, predicted)
            plan = plan_of(reference)
            # Only predictions that name a reference keyword can take one, and there are few of
            # them; all others are wrong wherever they stand, and need not be walked through.
            hot = [*filter(plan.names_any, predicted)]
            said, hits = len(set(predicted)), len(hot)
            if said == len(predicted) and plan.size:
                places = {*map(plan.place_of, hot)}
                if len(places) == hits and places.isdisjoint(UNCLEAR if hits > 1 else WALKED):
                    wrong = said - hits
                    if hits == plan.size and not (corrected or plan.endless):
                        # Nothing is left to take after the last of them: the rest counts as one.
                        end = predicted.index(hot[-1]) + 1
                        wrong = end - hits + (end < said)
                    found.append(made((hits, wrong, plan.size - hits)))
                    continue
            found.append(self._contested(plan, hot, reference, predicted))
        return found

    def _contested(
        self, plan: Plan, hot: list[str], reference: tuple[str, ...], predicted: tuple[str, ...]
    ) -> KeywordCounts:
        """Count where predictions may take each other's reference keyword."""
        said = len(set(predicted))
        if said == len(predicted) and plan.special.isdisjoint(hot):
            hits, right = takings(plan, hot)
            if plan.endless or hits < plan.size or self.reading == "corrected":
                return KeywordCounts(hits, said - right, plan.size - hits)
        return self._walked(reference, predicted)

    def _walked(self, reference: tuple[str, ...], predicted: tuple[str, ...]) -> KeywordCounts:
        named, leftover = self._walk(reference, predicted, None)
        return self._counted(reference, named, predicted[leftover:])

    def _plan_of(self, reference: tuple[str, ...]) -> Plan:
        """What single predictions take of a reference list."""
        wanted = frozenset(reference)
        takes: dict[str, tuple[int, ...]] = {}
        for place, keyword in enumerate(reference):
            for form in self._forms.get(keyword, ()):
                takes[form] = (*takes.get(form, ()), place)
        echo = frozenset(w for w in wanted if w not in takes and w not in self._forms)
        takes |= {word: (place,) for place, word in enumerate(reference) if word in echo}
        special = {first for (first, _), roots in self._pairs.items() if roots & wanted}
        special.update(w for w in wanted - echo if w not in self._roots.get(w, _NOTHING))
        if len(wanted) < len(reference):
            special |= takes.keys() | wanted
        return plan_of(takes, wanted, special, endless=bool(echo))

    def match(self, reference: Sequence[str], predicted: Sequence[str]) -> KeywordMatch:
        """Return which keywords match, which don't, and what they come close to."""
        lists = (tuple(reference), tuple(predicted))
        if self.reading == "corrected":
            lists = self._canonical_lists(*lists)
        taken: list[tuple[int, int, str]] = []
        named, leftover = self._walk(*lists, taken)
        counts = self._counted(lists[0], named, lists[1][leftover:])
        written = dict(zip(reversed(lists[0]), reversed(reference), strict=True))
        matched = self._matched(lists, predicted, taken, written)
        right = {index for start, width, _ in taken for index in range(start, start + width)}
        right |= {index for index, word in enumerate(lists[1]) if word in written}
        hit = {*lists[0]} & {*named}
        hallucinated = dict.fromkeys(w for i, w in enumerate(predicted) if i not in right)
        missed = dict.fromkeys(
            word
            for word, canonical in zip(reference, lists[0], strict=True)
            if canonical not in hit
        )
        return KeywordMatch(
            counts=counts,
            matched=matched,
            hallucinated=tuple(hallucinated),
            missed=tuple(missed),
            unknown=tuple(sorted({w for w in (*reference, *predicted) if not self.knows(w)})),
            near=tuple(self._near(hallucinated, missed)) if hallucinated and missed else (),
        )

    def knows(self, word: str) -> bool:
        """Tell whether the graph knows a keyword, in any spelling."""
        return word in self._known or self._canonical(word) in self._known

    def _walk(
        self,
        reference: Sequence[str],
        predicted: Sequence[str],
        taken: list[tuple[int, int, str]] | None,
    ) -> tuple[list[str], int]:
        """Go through the predictions, and return what each names and where it stopped."""
        roots_of, heads = self._roots.get, self._heads
        left, free = list(reference), set(reference)
        named: list[str] = []
        index, count = 0, len(predicted)
        while index < count and left:
            word = predicted[index]
            roots = reach = roots_of(word, _NOTHING)
            if word in heads and index + 1 < count:
                reach = roots | self._pairs.get((word, predicted[index + 1]), _NOTHING)
            if reach.isdisjoint(free):
                named.append(word)
                index += 1
                continue
            place = next(i for i, keyword in enumerate(left) if keyword in reach)
            keyword = left.pop(place)
            if keyword not in left:
                free.discard(keyword)
            named.append(keyword)
            width = 1 if keyword in roots else 2
            if taken is not None:
                taken.append((index, width, keyword))
            index += width
        return named, index

    def _counted(
        self, reference: Sequence[str], named: list[str], leftover: Sequence[str]
    ) -> KeywordCounts:
        found: set[object] = set(named)
        if leftover:
            if self.reading == "published":
                found.add(_ONE_LEFTOVER)
            else:
                found.update(leftover)
        wanted = set(reference)
        hits = len(found & wanted)
        return KeywordCounts(hits, len(found) - hits, len(wanted) - hits)

    def _matched(
        self,
        lists: tuple[Sequence[str], Sequence[str]],
        predicted: Sequence[str],
        taken: list[tuple[int, int, str]],
        written: Mapping[str, str],
    ) -> tuple[KeywordPair, ...]:
        """Pairs in the order of the predictions, with both sides as they were given."""
        pairs = {
            start: KeywordPair(" + ".join(predicted[start : start + width]), written[keyword])
            for start, width, keyword in taken
        }
        second = {start + 1 for start, width, _ in taken if width == 2}
        for index, word in enumerate(lists[1]):
            # Spelt like a reference keyword: right too, though no synonym of the graph's.
            if index not in pairs and index not in second and word in written:
                pairs[index] = KeywordPair(predicted[index], written[word])
        return tuple(pairs[index] for index in sorted(pairs))

    # One spelling ---------------------------------------------------------------------------------

    def _canonical_lists(
        self, reference: tuple[str, ...], predicted: tuple[str, ...]
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Both lists in the graph's spelling, the reference by its roots."""
        words = self._as_predicted(predicted)
        keywords, open_ended = self._as_reference(reference)
        if open_ended:
            keywords = tuple(self._as_root(keyword, words) for keyword in keywords)
        return keywords, words

    def _predicted_of(self, predicted: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(self._canonical, predicted))

    def _reference_of(self, reference: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
        """A reference list in the graph's spelling; whether some roots depend on predictions."""
        keywords = self._predicted_of(reference)
        if any(self._is_open(keyword) for keyword in keywords):
            return keywords, True
        return tuple(self._as_root(keyword, ()) for keyword in keywords), False

    def _is_open(self, keyword: str) -> bool:
        return keyword not in self._alias.roots and len(self._alias.all_roots.get(keyword, ())) > 1

    def _as_root(self, keyword: str, predicted: Sequence[str]) -> str:
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
        """The word as the graph writes it; in plain spelling where the graph does not know it."""
        if word in self._known:
            return word
        plain = clean_word(word)
        if (known := self._alias.spelling.get(plain)) is not None:
            return known
        return self._alias.spelling.get(singular_phrase(plain), plain)

    def _near(self, hallucinated: Iterable[str], missed: Iterable[str]) -> list[NearMiss]:
        """Pairs that have something in common; most pairs have nothing, and are not looked at."""
        having: dict[str, list[str]] = {}
        for keyword in missed:
            for feature in self._features(keyword):
                having.setdefault(feature, []).append(keyword)
        found = []
        for word in hallucinated:
            close = dict.fromkeys(
                keyword for feature in self._features(word) for keyword in having.get(feature, ())
            )
            found += [NearMiss(word, keyword, self._nearness(word, keyword)) for keyword in close]
        return [miss for miss in found if miss.why]

    def _features_of(self, word: str) -> tuple[str, ...]:
        """What two words have in common if they are close."""
        one = self._canonical(word)
        return (
            f"={one}",
            f"~{singular_phrase(clean_word(word))}",
            *(f">{root}" for root in self._roots.get(one, _NOTHING) | {one}),
            *(f"+{part}" for part in _content(one)),
        )

    def _nearness(self, word: str, keyword: str) -> str:
        one, other = self._canonical(word), self._canonical(keyword)
        if one == other or singular_phrase(clean_word(word)) == singular_phrase(
            clean_word(keyword)
        ):
            return "spelling"
        mine, theirs = self._roots.get(one, _NOTHING), self._roots.get(other, _NOTHING)
        if one in theirs:
            return "direction"
        if not mine.isdisjoint(theirs):
            return "root"
        return "word" if _content(one) & _content(other) else ""


@lru_cache(maxsize=1 << 16)
def _content(phrase: str) -> frozenset[str]:
    return frozenset(phrase.split()) - SMALL_WORDS


@lru_cache(maxsize=64)
def compile_keywords(
    graph: SynonymGraph, *, reading: KeywordReading, pairs: bool = False
) -> KeywordMatcher:
    """Make a matcher, or return the one made before for the same graph and reading.

    Args:
        graph: The graph to match by.
        reading: ``published`` or ``corrected``; see ``KeywordMatcher``.
        pairs: Whether two predictions in a row may be read together, as for behaviours.

    Raises:
        ValueError: There is no such reading.
    """
    if reading not in ("published", "corrected"):
        raise ValueError(f"unknown reading {reading!r}; use 'published' or 'corrected'")
    return KeywordMatcher(graph, reading, pairs=pairs)
