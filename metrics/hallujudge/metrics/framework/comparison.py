"""Paired comparison of two runs over the same clusters: differences, intervals and p-values.

Both runs answered about the same images, so that a cluster is drawn, or swapped, in both runs at
once. The interval of a difference comes from the paired bootstrap over clusters. The p-value comes
from a permutation test: if the models are interchangeable, swapping the two responses about an
image changes nothing. Scores are computed from sums, so that no item is judged again. The p-values
of several comparisons are corrected by Holm's method, and letters name groups that do not differ.

``docs/explanation/statistics.md`` has the method and what was measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, TypeAlias

from .arrays import FloatArray, np
from .columns_and_scores import ScoreDefinition
from .intervals import IntervalSettings, rounded, upper_t

if TYPE_CHECKING:
    from numpy.typing import NDArray


_MOST_REPLICATES = 1_000_000
# Numbers that are drawn together; 128 MB.
_MOST_SUMS = 1 << 24
# Most replicates in which a score may be undefined, for example because it divides by zero.
_UNDEFINED = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonSettings:
    """How runs are compared."""

    confidence: float = 0.95
    """How often intervals hold the true difference."""
    replicates: int = 10_000
    """How many samples the bootstrap and the permutation test draw."""
    seed: int = 0
    """Seed of the random numbers."""

    def __post_init__(self) -> None:
        IntervalSettings(confidence=self.confidence)
        if not 100 <= self.replicates <= _MOST_REPLICATES:
            raise ValueError(
                f"replicates is {self.replicates}; give a number from 100 to {_MOST_REPLICATES}"
            )
        if self.seed < 0:
            raise ValueError(f"seed is {self.seed}; give 0 or a positive number")

    @property
    def text(self) -> str:
        """Return the method, as signatures show it."""
        return f"paired-bootstrap-{float(self.confidence)!r}-{self.replicates}-{self.seed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedClusters:
    """The sums of the same clusters in two runs."""

    first: Mapping[str, FloatArray]
    """Column -> sums by cluster, of the first run."""
    second: Mapping[str, FloatArray]
    """The same of the second run, in the same order."""

    def rows(self, columns: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        """Return the columns of both runs as matrices, without clusters that do not count."""
        first = np.column_stack([self.first[name] for name in columns])
        second = np.column_stack([self.second[name] for name in columns])
        counts = np.any(first != 0, axis=1) | np.any(second != 0, axis=1)
        return first[counts], second[counts]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """The difference of one score between two runs."""

    score: str
    """The score's name."""
    first: float | None
    """Value in the first run, over the items that both have; None if undefined."""
    second: float | None
    """Value in the second run."""
    difference: float | None
    """Second minus first; None if one of them is undefined."""
    ci_low: float | None
    """Lower end of the difference's interval; None without an interval."""
    ci_high: float | None
    """Upper end of the interval."""
    p: float | None
    """Two-sided p-value of the permutation test; None without a test."""
    clusters: int
    """How many clusters count in the score."""
    changed: int
    """How many of them have other statistics in the second run."""


PairedScores: TypeAlias = "tuple[Sequence[ScoreDefinition], PairedClusters]"
"""Scores, and the clusters of two runs that they are compared over."""


def paired_differences(
    pairs: Sequence[PairedScores], settings: ComparisonSettings
) -> list[tuple[PairedDifference, ...]]:
    """Return the difference of each score between two runs, with interval and p-value.

    Equal input has equal output: the random numbers depend on the seed and the number of clusters
    alone. Pairs of runs with the same number therefore share them.

    Args:
        pairs: The scores of each pair of runs, at least one, and their clusters.
        settings: How runs are compared.
    """
    found = dict(_differences([_Paired.of(*pair) for pair in pairs], settings))
    return [found[place] for place in range(len(pairs))]


def _differences(
    pairs: Sequence[_Paired], settings: ComparisonSettings
) -> Iterator[tuple[int, tuple[PairedDifference, ...]]]:
    """Yield the place of each pair and its differences, those of equal sizes together."""
    sizes: dict[int, list[int]] = {}
    for place, pair in enumerate(pairs):
        sizes.setdefault(len(pair.rows), []).append(place)
    for places in sizes.values():
        width = max(pairs[place].rows.shape[1] for place in places)
        most = max(1, _MOST_SUMS // (settings.replicates * width))
        for start in range(0, len(places), most):
            group = places[start : start + most]
            sums = _resampled([pairs[place] for place in group], settings)
            for place, drawn in zip(group, sums, strict=True):
                scores, clusters = pairs[place].scores, pairs[place].clusters
                yield place, tuple(_difference(s, clusters, drawn, settings) for s in scores)


def _difference(
    score: ScoreDefinition,
    clusters: PairedClusters,
    sums: _Resampled,
    settings: ComparisonSettings,
) -> PairedDifference:
    first, second = clusters.rows(score.columns)
    values = _value(score, first.sum(axis=0)), _value(score, second.sum(axis=0))
    difference = None if None in values else rounded(values[1] - values[0])  # type: ignore[operator]
    ends = None if difference is None else sums.interval(score, len(first))
    changed = np.any(first != second, axis=1)
    # Which of several parts is the largest may differ between runs, so that swapping means nothing.
    tested = difference is not None and not score.largest_of
    return PairedDifference(
        score=score.name,
        first=values[0],
        second=values[1],
        difference=difference,
        ci_low=rounded(ends[0]) if ends else None,
        ci_high=rounded(ends[1]) if ends else None,
        p=p_value(score, first, second, changed, replicates=settings.replicates, seed=settings.seed)
        if tested
        else None,
        clusters=len(first),
        changed=int(changed.sum()),
    )


def _value(score: ScoreDefinition, totals: FloatArray) -> float | None:
    value = float(score.values(totals[None, :])[0])
    return None if math.isnan(value) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class _Paired:
    """Scores of two runs, before clusters are drawn."""

    scores: Sequence[ScoreDefinition]
    clusters: PairedClusters
    columns: Mapping[str, int]
    """Column -> its place in the rows."""
    rows: FloatArray
    """The columns of the first run, then those of the second."""

    @classmethod
    def of(cls, scores: Sequence[ScoreDefinition], clusters: PairedClusters) -> _Paired:
        columns = tuple(dict.fromkeys(name for score in scores for name in score.columns))
        return cls(
            scores=scores,
            clusters=clusters,
            columns={name: at for at, name in enumerate(columns)},
            rows=np.hstack(clusters.rows(columns)),
        )


def _resampled(pairs: Sequence[_Paired], settings: ComparisonSettings) -> Iterator[_Resampled]:
    """Draw clusters with replacement, the same in both runs of all pairs."""
    rows = np.hstack([pair.rows for pair in pairs])
    # Where no item of both runs counts in the scores, there is nothing to draw.
    sums = np.zeros((settings.replicates, rows.shape[1]))
    if len(rows):
        sums = np.vstack([summed(counts, rows) for counts in _draws(len(rows), settings)])
    ends = np.cumsum([pair.rows.shape[1] for pair in pairs])[:-1]
    for pair, drawn in zip(pairs, np.split(sums, ends, axis=1), strict=True):
        first, second = np.split(drawn, 2, axis=1)
        yield _Resampled(
            columns=pair.columns, first=first, second=second, confidence=settings.confidence
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Resampled:
    """The sums of both runs in every replicate of the paired bootstrap."""

    columns: Mapping[str, int]
    """Column -> its place in the sums."""
    first: FloatArray
    """Sums of the first run: a row for each replicate."""
    second: FloatArray
    """Sums of the second run, over the same clusters."""
    confidence: float
    """How often intervals hold the true difference."""

    def interval(self, score: ScoreDefinition, clusters: int) -> tuple[float, float] | None:
        """Return the percentile interval of a difference, widened for few clusters.

        The percentile interval is too narrow for few clusters: the bootstrap's variance divides by
        m instead of m - 1, and its quantiles are normal ones. Hesterberg (What Teachers Should Know
        About the Bootstrap, The American Statistician 69, 2015) widens the percentiles to make up
        for both.

        Args:
            score: The score.
            clusters: How many clusters count in it.
        """
        if clusters < 2:
            return None
        places = [self.columns[name] for name in score.columns]
        found = score.values(self.second[:, places]) - score.values(self.first[:, places])
        defined = found[~np.isnan(found)]
        if len(defined) < (1 - _UNDEFINED) * len(found):
            return None
        t = upper_t((1 - self.confidence) / 2, clusters - 1)
        tail = NormalDist().cdf(-t * math.sqrt(clusters / (clusters - 1)))
        low, high = np.quantile(defined, [tail, 1 - tail])
        return float(low), float(high)


def _draws(clusters: int, settings: ComparisonSettings) -> Iterator[Counts]:
    """Yield how often each replicate (row) draws each cluster (column), in blocks."""
    # A stream of its own: the swaps of the permutation test have the stream 2.
    random = np.random.default_rng((settings.seed, 1))
    for rows in blocks_of(settings.replicates, clusters):
        drawn = random.integers(0, clusters, size=(rows, clusters), dtype=np.int32)
        # Matrices are multiplied as floats, and 32 bits hold such counts exactly.
        counts = np.empty((rows, clusters), dtype=np.float32)
        for row, numbers in zip(counts, drawn, strict=True):
            row[:] = np.bincount(numbers, minlength=clusters)
        yield counts


Counts: TypeAlias = "NDArray[np.uint8] | NDArray[np.float32]"
"""How often each replicate (row) has each cluster (column)."""

# Numbers of one block of replicates; 8 MB.
_BLOCK = 1 << 20
# Larger products of matrices are shared among threads, whose waiting costs more than the product.
_UNSHARED, _MOST_DEPTH, _LEAST_ROWS = 1 << 18, 1 << 12, 8
# Up to here, 32 bits hold every whole number.
_NARROW_BELOW = 1 << 24
# Relative difference below which two statistics are equal but for rounding.
_EQUAL = 1e-9
# A variance below this share of its terms is their rounding error.
_NO_VARIANCE = 1e-12


def p_value(
    score: ScoreDefinition,
    first: FloatArray,
    second: FloatArray,
    changed: np.ndarray[tuple[int], np.dtype[np.bool_]],
    *,
    replicates: int,
    seed: int,
) -> float:
    """Return the two-sided p-value of swapping clusters between the runs.

    With few changed clusters every swap is tried, otherwise random ones. The p-value of random
    swaps counts the observed one too, so that it is never 0 (Phipson and Smyth, 2010).
    """
    count = int(changed.sum())
    if count == 0:
        return 1.0
    statistic = _Swapped.of(score, first, second, changed)
    # Then every swap is no more work than random ones, and has no error of chance.
    exact = 2**count <= replicates
    # By the steps of the swaps, whose rounding the comparison then shares.
    observed = statistic.of_swaps(np.zeros((1, count), dtype=np.uint8))[0]
    swaps = _every_swap(count) if exact else _random_swaps(count, replicates, seed)
    extreme = sum(_at_least(statistic.of_swaps(block), float(observed)) for block in swaps)
    if exact:
        return extreme / 2.0**count
    return (extreme + 1) / (replicates + 1)


def _at_least(found: FloatArray, observed: float) -> int:
    """Count statistics that are as far from zero as the observed one; undefined ones count."""
    return int(np.sum(~(np.abs(found) < abs(observed) * (1 - _EQUAL))))


def _every_swap(count: int) -> Iterator[Counts]:
    masks = np.arange(2**count)[:, None] >> np.arange(count)
    yield (masks & 1).astype(np.uint8)


def _random_swaps(count: int, replicates: int, seed: int) -> Iterator[Counts]:
    """Yield random swaps: a row for each replicate, a one for each cluster that is swapped."""
    # A stream of its own: with the same seed, the bootstrap of a comparison draws others.
    random = np.random.default_rng((seed, 2))
    for rows in blocks_of(replicates, count):
        # A bit decides each swap.
        drawn = np.frombuffer(random.bytes(rows * ((count + 7) // 8)), dtype=np.uint8)
        yield np.unpackbits(drawn.reshape(rows, -1), axis=1, count=count)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Swapped:
    """The test's statistic after clusters are swapped: the difference over its standard error.

    Without the division, the test would reject too often for runs that are equally good but not
    interchangeable, such as long and short captions with the same rate: swapping evens out the
    mean lengths, which changes the variance of the difference. Divided by its standard
    error the difference has the same distribution before and after (Janssen, 1997; Chung and
    Romano, Exact and Asymptotically Robust Permutation Tests, 2013), and the test stays exact for
    interchangeable models.

    The standard error is the delta method's, from the score's derivatives at the swapped sums. It
    needs the sums of products of columns, which are swapped as the columns are.
    """

    score: ScoreDefinition
    totals: tuple[FloatArray, FloatArray]
    """Sums of both runs by column."""
    products: tuple[FloatArray, FloatArray, FloatArray]
    """Sums of products of two columns: within the first run, within the second, between them."""
    moved: FloatArray
    """Of each changed cluster (row): what swapping it adds to the first run's sums, to its sums of
    products, and to those between the runs."""

    @classmethod
    def of(
        cls,
        score: ScoreDefinition,
        first: FloatArray,
        second: FloatArray,
        changed: np.ndarray[tuple[int], np.dtype[np.bool_]],
    ) -> _Swapped:
        """Sum up what swaps need, so that a swap is a product of matrices."""
        a, b = first[changed], second[changed]
        # Products of two columns are the same in both orders; of two runs, but for their sign.
        (i, j), (k, m) = (np.triu_indices(a.shape[1], above) for above in (0, 1))
        within, between = b[:, i] * b[:, j] - a[:, i] * a[:, j], b[:, k] * a[:, m]
        moved = [b - a, within, between - a[:, k] * b[:, m]]
        return cls(
            score=score,
            totals=(first.sum(axis=0), second.sum(axis=0)),
            products=(first.T @ first, second.T @ second, first.T @ second),
            moved=np.hstack(moved),
        )

    def of_swaps(self, swaps: Counts) -> FloatArray:
        """Return the statistic of each row of swaps."""
        width = len(self.score.columns)
        added = summed(swaps, self.moved)
        (i, j), (k, m) = (np.triu_indices(width, above) for above in (0, 1))
        within, between = np.zeros((2, len(added), width, width))
        within[:, i, j] = within[:, j, i] = added[:, width : width + len(i)]
        between[:, k, m] = added[:, width + len(i) :]
        between[:, m, k] = -between[:, k, m]
        first, second = self.totals[0] + added[:, :width], self.totals[1] - added[:, :width]
        difference = self.score.values(second) - self.score.values(first)
        variance = self._variance(
            self.score.slopes(first),
            self.score.slopes(second),
            self.products[0] + within,
            self.products[1] - within,
            self.products[2] + between,
        )
        return _over_error(difference, variance)

    @staticmethod
    def _variance(
        a: FloatArray, b: FloatArray, within_a: FloatArray, within_b: FloatArray, mixed: FloatArray
    ) -> FloatArray:
        """Return the sum over clusters of the squared change that each makes to the difference."""
        found: FloatArray = (
            np.einsum("ri,rij,rj->r", a, within_a, a)
            + np.einsum("ri,rij,rj->r", b, within_b, b)
            - 2 * np.einsum("ri,rij,rj->r", a, mixed, b)
        )
        terms = np.einsum("ri,rii->r", a**2, within_a) + np.einsum("ri,rii->r", b**2, within_b)
        found[found < _NO_VARIANCE * terms] = 0
        return found


def _over_error(difference: FloatArray, variance: FloatArray) -> FloatArray:
    """Return differences over their standard errors; 0 over 0 is 0."""
    out = np.where(difference == 0, 0.0, np.copysign(np.inf, difference))
    out[np.isnan(difference)] = np.nan
    # The root is taken of all variances, also of those that rounding took below 0.
    np.divide(difference, np.sqrt(np.maximum(variance, 0)), out=out, where=variance > 0)
    return out


def summed(counts: Counts, table: FloatArray) -> FloatArray:
    """Return the product of two matrices: rows of the table, added up as often as counts say."""
    largest = float(np.abs(table).max(initial=0.0)) * float(counts.sum(axis=1).max(initial=0))
    narrow = largest < _NARROW_BELOW and np.array_equal(table, np.rint(table))
    kind = np.float32 if narrow else np.float64
    width = table.shape[1]
    depth = min(_MOST_DEPTH, max(1, _UNSHARED // (_LEAST_ROWS * width)))
    rows = min(max(2, len(counts)), _UNSHARED // (min(depth, len(table)) * width))
    padded = np.zeros((-(-len(counts) // rows) * rows, len(table)), dtype=kind)
    padded[: len(counts)] = counts
    total = np.zeros((len(padded), width))
    for at in range(0, len(table), depth):
        part = table[at : at + depth].astype(kind)
        block = padded[:, at : at + depth].reshape(-1, rows, len(part))
        total += (block @ part).reshape(-1, width)
    return total[: len(counts)]


def blocks_of(rows: int, columns: int) -> Iterator[int]:
    """Yield the rows of each block, so that a block has a bounded size."""
    most = max(1, _BLOCK // columns)
    for start in range(0, rows, most):
        yield min(most, rows - start)


_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return p-values corrected for their number (Holm, 1979).

    The chance of one or more false findings among all of them is at most the level, however the
    tests depend on each other.
    """
    # A larger p-value never has a smaller corrected one: the largest so far is kept.
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    corrected, largest = [0.0] * len(p_values), 0.0
    for rank, at in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[at]))
        corrected[at] = largest
    return tuple(corrected)


def compact_letters(count: int, different: Iterable[tuple[int, int]]) -> tuple[str, ...]:
    """Return letters for things by rank; two that share a letter do not differ significantly.

    Insert and absorb (Piepho, An Algorithm for a Letter-Based Representation of All-Pairwise
    Comparisons, 2004).

    Args:
        count: How many things there are.
        different: Pairs of ranks, counted from 0, that differ significantly.
    """
    groups = [frozenset(range(count))] if count else []
    for one, other in sorted(different):
        split = (
            part
            for group in groups
            for part in ((group - {one}, group - {other}) if {one, other} <= group else (group,))
        )
        groups = _absorbed(split)
    # By their best members, so that the best group has the letter a.
    groups.sort(key=sorted)
    return tuple(
        "".join(_letter(at) for at, group in enumerate(groups) if rank in group)
        for rank in range(count)
    )


def _absorbed(groups: Iterable[frozenset[int]]) -> list[frozenset[int]]:
    """Return the distinct groups that are not part of another."""
    distinct = list(dict.fromkeys(groups))
    return [group for group in distinct if not any(group < other for other in distinct)]


def _letter(at: int) -> str:
    """Return the letter of a group: a to z, then a1 to z1, and so on."""
    turn, place = divmod(at, len(_LETTERS))
    return _LETTERS[place] + (str(turn) if turn else "")
