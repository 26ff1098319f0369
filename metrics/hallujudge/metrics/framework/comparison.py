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
from typing import TYPE_CHECKING

from .intervals import IntervalSettings, upper_t

if TYPE_CHECKING:
    import numpy as np

    from .metric import FloatArray, ScoreDefinition

__all__ = ["ComparisonSettings", "PairedClusters", "PairedDifference", "paired_differences"]

_MOST_REPLICATES = 1_000_000
# Numbers of one block of replicates; 8 MB.
_BLOCK = 1 << 20
# Relative difference below which two statistics are equal but for rounding.
_EQUAL = 1e-9
# A variance below this share of its terms is their rounding error.
_NO_VARIANCE = 1e-12
# Step of the numerical derivative; the cube root of a float's precision is best for a central one.
_STEP = 6e-6
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
        """The method, as signatures show it."""
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
        import numpy as np

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


def paired_differences(
    scores: Sequence[ScoreDefinition], clusters: PairedClusters, settings: ComparisonSettings
) -> tuple[PairedDifference, ...]:
    """Return the difference of each score between two runs, with interval and p-value.

    Equal input gives equal output: the random numbers depend on the seed and the number of clusters
    alone.
    """
    columns = tuple(dict.fromkeys(name for score in scores for name in score.columns))
    sums = _Resampled.of(clusters, columns, settings) if scores else None
    return tuple(_difference(score, clusters, sums, settings) for score in scores)


def _difference(
    score: ScoreDefinition,
    clusters: PairedClusters,
    sums: _Resampled | None,
    settings: ComparisonSettings,
) -> PairedDifference:
    import numpy as np

    first, second = clusters.rows(score.columns)
    values = _value(score, first.sum(axis=0)), _value(score, second.sum(axis=0))
    difference = None if None in values else _rounded(values[1] - values[0])  # type: ignore[operator]
    ends = None if difference is None or sums is None else sums.interval(score, len(first))
    changed = np.any(first != second, axis=1)
    # Which of several parts is the largest may differ between runs, so that swapping means nothing.
    tested = difference is not None and not score.largest_of
    return PairedDifference(
        score=score.name,
        first=values[0],
        second=values[1],
        difference=difference,
        ci_low=_rounded(ends[0]) if ends else None,
        ci_high=_rounded(ends[1]) if ends else None,
        p=_p_value(score, first, second, changed, settings) if tested else None,
        clusters=len(first),
        changed=int(changed.sum()),
    )


def _rounded(number: float) -> float:
    """Return a number without the last bits, in which machines may differ."""
    return round(number, 12) + 0.0


def _value(score: ScoreDefinition, totals: FloatArray) -> float | None:
    value = float(_values(score, totals[None, :])[0])
    return None if math.isnan(value) else value


def _values(score: ScoreDefinition, sums: FloatArray) -> FloatArray:
    """Return the score of every row of sums; NaN where it is undefined."""
    return score.value({name: sums[:, at] for at, name in enumerate(score.columns)})


# The interval: paired bootstrap ------------------------------------------------------------------


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

    @classmethod
    def of(
        cls, clusters: PairedClusters, columns: Sequence[str], settings: ComparisonSettings
    ) -> _Resampled:
        """Draw clusters with replacement, the same in both runs."""
        import numpy as np

        first, second = clusters.rows(columns)
        both = np.hstack([first, second])
        sums = np.vstack([counts @ both for counts in _draws(len(both), settings)])
        return cls(
            columns={name: at for at, name in enumerate(columns)},
            first=sums[:, : len(columns)],
            second=sums[:, len(columns) :],
            confidence=settings.confidence,
        )

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
        import numpy as np

        if clusters < 2:
            return None
        places = [self.columns[name] for name in score.columns]
        found = _values(score, self.second[:, places]) - _values(score, self.first[:, places])
        defined = found[~np.isnan(found)]
        if len(defined) < (1 - _UNDEFINED) * len(found):
            return None
        t = upper_t((1 - self.confidence) / 2, clusters - 1)
        tail = NormalDist().cdf(-t * math.sqrt(clusters / (clusters - 1)))
        low, high = np.quantile(defined, [tail, 1 - tail])
        return float(low), float(high)


def _draws(clusters: int, settings: ComparisonSettings) -> Iterator[FloatArray]:
    """Yield how often each replicate (row) draws each cluster (column), in blocks."""
    import numpy as np

    random = np.random.default_rng((settings.seed, 1))
    for rows in _blocks(settings.replicates, clusters):
        drawn = random.integers(0, clusters, size=(rows, clusters), dtype=np.int32)
        counts = np.empty((rows, clusters))
        for row, numbers in zip(counts, drawn, strict=True):
            row[:] = np.bincount(numbers, minlength=clusters)
        yield counts


def _blocks(rows: int, columns: int) -> Iterator[int]:
    """Yield the rows of each block, so that a block has a bounded size."""
    most = max(1, _BLOCK // columns)
    for start in range(0, rows, most):
        yield min(most, rows - start)


# The p-value: permutation test -------------------------------------------------------------------


def _p_value(
    score: ScoreDefinition,
    first: FloatArray,
    second: FloatArray,
    changed: np.ndarray[tuple[int], np.dtype[np.bool_]],
    settings: ComparisonSettings,
) -> float:
    """Return the two-sided p-value of swapping clusters between the runs.

    With few changed clusters every swap is tried, otherwise random ones. The p-value of random
    swaps counts the observed one too, so that it is never 0 (Phipson and Smyth, 2010).
    """
    count = int(changed.sum())
    if count == 0:
        return 1.0
    statistic = _Swapped.of(score, first, second, changed)
    exact = 2**count <= settings.replicates
    observed = statistic.of_swaps(_no_swap(count))[0]
    swaps = _every_swap(count) if exact else _random_swaps(count, settings)
    extreme = sum(_at_least(statistic.of_swaps(block), float(observed)) for block in swaps)
    if exact:
        return extreme / 2.0**count
    return (extreme + 1) / (settings.replicates + 1)


def _at_least(found: FloatArray, observed: float) -> int:
    """Count statistics that are as far from zero as the observed one; undefined ones count."""
    import numpy as np

    return int(np.sum(~(np.abs(found) < abs(observed) * (1 - _EQUAL))))


def _no_swap(count: int) -> FloatArray:
    import numpy as np

    return np.zeros((1, count))


def _every_swap(count: int) -> Iterator[FloatArray]:
    import numpy as np

    masks = np.arange(2**count)[:, None] >> np.arange(count)
    yield (masks & 1).astype(np.float64)


def _random_swaps(count: int, settings: ComparisonSettings) -> Iterator[FloatArray]:
    """Yield random swaps: a row for each replicate, a one for each cluster that is swapped."""
    import numpy as np

    random = np.random.default_rng((settings.seed, 2))
    for rows in _blocks(settings.replicates, count):
        drawn = np.frombuffer(random.bytes(rows * ((count + 7) // 8)), dtype=np.uint8)
        bits = np.unpackbits(drawn.reshape(rows, -1), axis=1, count=count)
        yield bits.astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Swapped:
    """The test's statistic after clusters are swapped: the difference over its standard error.

    Without the division, the test would reject too often for runs that are equally good but not
    interchangeable, such as long and short captions with the same rate: swapping gives both runs
    the same mean length, which changes the variance of the difference. Divided by its standard
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
        import numpy as np

        a, b = first[changed], second[changed]
        between = _outer(b, a)
        moved = [b - a, _outer(b, b) - _outer(a, a), between - _outer(a, b)]
        return cls(
            score=score,
            totals=(first.sum(axis=0), second.sum(axis=0)),
            products=(first.T @ first, second.T @ second, first.T @ second),
            moved=np.hstack(moved),
        )

    def of_swaps(self, swaps: FloatArray) -> FloatArray:
        """Return the statistic of each row of swaps."""
        import numpy as np

        width = len(self.score.columns)
        added = swaps @ self.moved
        sums, products, between = np.split(added, [width, width + width**2], axis=1)
        first, second = self.totals[0] + sums, self.totals[1] - sums
        difference = _values(self.score, second) - _values(self.score, first)
        shape = (-1, width, width)
        within = products.reshape(shape)
        variance = self._variance(
            _slopes(self.score, first),
            _slopes(self.score, second),
            self.products[0] + within,
            self.products[1] - within,
            self.products[2] + between.reshape(shape),
        )
        return _over_error(difference, variance)

    @staticmethod
    def _variance(
        a: FloatArray, b: FloatArray, within_a: FloatArray, within_b: FloatArray, mixed: FloatArray
    ) -> FloatArray:
        """Return the sum over clusters of the squared change that each makes to the difference."""
        import numpy as np

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
    import numpy as np

    out = np.where(difference == 0, 0.0, np.copysign(np.inf, difference))
    out[np.isnan(difference)] = np.nan
    np.divide(difference, np.sqrt(np.maximum(variance, 0)), out=out, where=variance > 0)
    return out


def _outer(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the products of every column of one matrix with every column of the other."""
    products: FloatArray = (a[:, :, None] * b[:, None, :]).reshape(len(a), -1)
    return products


def _slopes(score: ScoreDefinition, sums: FloatArray) -> FloatArray:
    """Return the score's derivatives by its sums, at every row of sums."""
    import numpy as np

    value = score.smooth or score.value
    columns = {name: sums[:, at] for at, name in enumerate(score.columns)}
    slopes = np.empty_like(sums)
    for at, name in enumerate(score.columns):
        step = _STEP * np.maximum(np.abs(sums[:, at]), 1.0)
        above = value({**columns, name: sums[:, at] + step})
        below = value({**columns, name: sums[:, at] - step})
        slopes[:, at] = (above - below) / (2 * step)
    return slopes
