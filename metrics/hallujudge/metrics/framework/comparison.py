"""Paired comparison of two runs over the same clusters: differences, intervals and p-values.

Both runs answered about the same images, so that a cluster is drawn, or swapped, in both runs at
once. The interval of a difference comes from the paired bootstrap over clusters. The p-value comes
from a permutation test: if the models are interchangeable, swapping the two responses about an
image changes nothing. Scores are computed from sums, so that no item is judged again.

``docs/explanation/statistics.md`` has the method and what was measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TypeAlias

from .arrays import FloatArray, np
from .columns_and_scores import ScoreDefinition
from .intervals import IntervalSettings, rounded, upper_t
from .significance import Counts, blocks_of, p_value, summed

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
