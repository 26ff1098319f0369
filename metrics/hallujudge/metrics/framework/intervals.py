"""Confidence intervals of scores, from the jackknife over clusters, and notes on small samples.

A score is a function of sums over clusters (images or videos). The jackknife leaves out one cluster
at a time and measures the change of the score. This works for any function: a ratio, an F1, a mean
of ratios. The changes give the score's variance and its degrees of freedom. The interval is
Wilson's with this variance in place of the binomial one. It stays in the score's range, and its
width is above zero even if nothing, or everything, is hallucinated.

``docs/explanation/statistics.md`` has the measured coverage, ``benchmarks/bench_intervals.py``
measures it, and ``docs/decisions/intervals.md`` has the alternatives.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from msgspec import Struct, structs

from .arrays import BoolArray, FloatArray, np
from .columns_and_scores import ScoreDefinition, Sums

FEW_CLUSTERS = 50
"""With fewer clusters, the measured coverage of some scores is outside 93.5 to 96.5 %."""

# Above this confidence, quantiles with few degrees of freedom lose digits.
_MOST_CONFIDENT = 0.9999
# Changes below this share of the score are rounding errors of sums of fractions.
_CONSTANT_BELOW = 1e-9
# A few clusters are not enough to estimate a kurtosis. It is averaged with that of four clusters of
# a normal distribution, whose squares have the variance 2.
_PRIOR_CLUSTERS, _NORMAL = 4.0, 2.0
# With more degrees of freedom, two terms of the Cornish-Fisher expansion are exact to ten digits.
_MANY_DEGREES = 1e5
_MOST_STEPS, _SMALL_STEP = 100, 1e-14
# Brown, Cai and DasGupta change the ends of 1 to 3 failures. Ends are rounded to 12 decimals.
_FEW_FAILURES, _CLOSE = 3.0, 1e-13


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalSettings:
    """Settings of intervals."""

    confidence: float = 0.95
    """Share of intervals that contain the true value."""

    def __post_init__(self) -> None:
        if not 0 < self.confidence <= _MOST_CONFIDENT:
            raise ValueError(
                f"confidence is {self.confidence}; give a number above 0 and "
                f"at most {_MOST_CONFIDENT}"
            )

    @property
    def text(self) -> str:
        """Return the method and its confidence, as signatures show them."""
        return f"jackknife-wilson-{float(self.confidence)!r}"


def counting_clusters(clusters: FloatArray) -> BoolArray:
    """Return on which clusters a score depends: rows that are not all zero."""
    counting: BoolArray = np.any(clusters != 0, axis=1)
    return counting


def score_interval(
    clusters: FloatArray, score: ScoreDefinition, settings: IntervalSettings
) -> tuple[float, float] | None:
    """Return the confidence interval of a score.

    The interval does not depend on the order of clusters.

    Args:
        clusters: Sums by cluster (rows) and by the score's columns (columns).
        score: The score, with its range.
        settings: The confidence.

    Returns:
        Lower and upper end. None if fewer than two clusters count in the score, if leaving out a
        cluster makes it undefined, or if a score without upper limit is equal in all clusters.

    Raises:
        ValueError: The score is outside the range that its definition declares.
    """
    # Other clusters would make the sample look larger than the score's own.
    rows: FloatArray = clusters[counting_clusters(clusters)]
    if len(rows) < 2:
        return None
    sample = _Sample.of(rows, score)
    tail = (1 - settings.confidence) / 2
    if score.largest_of:
        ends = _largest(sample, score.largest_of, tail)
    else:
        # A score that rounds its parts would change in steps, or not at all, without one cluster.
        jackknife = sample.jackknife(score.smooth or score.value)
        ends = jackknife.ends(tail, tail) if jackknife else None
    return (rounded(ends[0]), rounded(ends[1])) if ends else None


def rounded(number: float) -> float:
    """Return a number to 12 decimals, and one above 100 to 14 digits.

    Sums of fractions differ in the last bits between machines, and between processes: how a library
    adds numbers depends on where they are in memory. Zero has no sign.
    """
    return float(f"{number:.14g}") if abs(number) > 100 else round(number, 12) + 0.0


class _Jackknife(Struct, frozen=True, kw_only=True):
    """A score, and its changes when single clusters are left out."""

    name: str
    value: float
    low: float
    high: float
    clusters: float
    """Number of clusters that count in the score."""
    effective: float
    """Effective number, which is lower if their sizes differ (Kish, Survey Sampling, 1965)."""
    variance: float
    skewness: float
    kurtosis: float

    def ends(self, lower_tail: float, upper_tail: float) -> tuple[float, float] | None:
        """Return the lower and the upper end for the given error probabilities."""
        if not self.low - _CONSTANT_BELOW <= self.value <= self.high + _CONSTANT_BELOW:
            raise ValueError(
                f"{self.name} is {self.value}, outside its range from {self.low} to "
                f"{self.high}; declare the range in its ScoreDefinition"
            )
        if math.isinf(self.low) and math.isinf(self.high):
            return self._around(lower_tail, upper_tail)
        if math.isinf(self.low):
            # A score without lower limit is the negative of one without upper limit.
            ends = self._negative()._above_low(upper_tail, lower_tail)
            return (-ends[1], -ends[0]) if ends else None
        make = self._above_low if math.isinf(self.high) else self._in_range
        return make(lower_tail, upper_tail)

    def _around(self, *tails: float) -> tuple[float, float] | None:
        """Return Student's interval, for differences of scores without limits."""
        if self.variance == 0:
            return None
        # Unlike a share's, the variance of such a difference does not follow from its value.
        degrees = self._degrees(self.kurtosis - 1)
        low, high = (upper_t(tail, degrees) * math.sqrt(self.variance) for tail in tails)
        return self.value - low, self.value + high

    def _negative(self) -> _Jackknife:
        return structs.replace(
            self, value=-self.value, low=-self.high, high=-self.low, skewness=-self.skewness
        )

    def _in_range(self, *tails: float) -> tuple[float, float]:
        """Return Wilson's interval with the measured variance, on the range from low to high.

        Wilson (1927) assumes the variance ``share * (1 - share) / size``. The size here is the one
        that yields the measured variance. If the variance is zero, the size is the number of
        clusters, which is the worst case: all items of a cluster are equal.
        """
        width = self.high - self.low
        # ends() lets rounding errors outside of the range pass.
        share = min(max((self.value - self.low) / width, 0.0), 1.0)
        binomial, variance = share * (1 - share), self.variance / width**2
        if binomial == 0 or variance == 0:
            size, degrees = self.effective, math.inf
        else:
            size = binomial / variance
            # Change of Wilson's variance with the score, in units of the changes' standard
            # deviation.
            slope = (1 - 2 * share) / binomial * math.sqrt(variance * self.clusters)
            degrees = self._degrees(self.kurtosis - 1 - 2 * slope * self.skewness + slope**2)
        low, high = (
            _wilson(share, size, sign * upper_t(tail, degrees))
            for sign, tail in zip((-1, 1), tails, strict=True)
        )
        # Of a share above one half, the rare event is at the upper end.
        if share < 0.5:
            low = _with_few(low, share, size, tails[0])
        else:
            high = 1 - _with_few(1 - high, 1 - share, size, tails[1])
        return self.low + width * low, self.low + width * high

    def _above_low(self, *tails: float) -> tuple[float, float] | None:
        """Return an interval of the logarithm, for scores without upper limit.

        If a few clusters are much larger than the others, the variance grows faster with the score
        than the logarithm compensates; the ends move up accordingly.
        """
        above = self.value - self.low
        if self.variance == 0 or above <= 0:
            return None
        relative = self.variance / above**2
        found = self.skewness * math.sqrt(relative * (self.clusters - 1)) / self.clusters
        slope = max(0.0, found - 2 * relative)
        degrees = self._degrees(self.kurtosis - 1 - self.skewness**2)
        low, high = (
            _tilted(relative, slope, sign * upper_t(tail, degrees))
            for sign, tail in zip((-1, 1), tails, strict=True)
        )
        return self.low + above * math.exp(low), self.low + above * math.exp(high)

    def _degrees(self, noise: float) -> float:
        """Return Satterthwaite's degrees of freedom of the variance (1946).

        Args:
            noise: The variance of the changes' squares, beyond what the score itself explains, in
                units of their squared mean. 2 for a normal distribution, which yields the usual
                ``clusters - 1``; 0 for single answers that are right or wrong.
        """
        total = self.clusters * max(noise, 0.0) + _PRIOR_CLUSTERS * _NORMAL
        # upper_t() needs at least one degree.
        return max(1.0, 2 * (self.clusters - 1) * (self.clusters + _PRIOR_CLUSTERS) / total)


def _wilson(share: float, size: float, t: float) -> float:
    """Return the end of Wilson's interval on the side of ``t``'s sign."""
    squared = t * t / size
    reach = math.copysign(math.sqrt(squared * (share * (1 - share) + squared / 4)), t)
    # Rounding may take an end a little beyond 0 or 1.
    return min(max((share + squared / 2 + reach) / (1 + squared), 0.0), 1.0)


def _with_few(low: float, share: float, size: float, tail: float) -> float:
    """Return the lower end of Wilson's interval, moved down for one to three failures.

    Wilson's lower end for a single failure is far too high: of rates at which a failure is
    expected in one sample of six, its interval misses 16 %. With up to three failures the end is
    that of a Poisson rate (Brown, Cai and DasGupta, Interval estimation for a binomial proportion,
    2001, section 4.1.1); up to four it goes over into Wilson's.
    """
    failures = share * size
    weight = min(1.0, _FEW_FAILURES + 1 - failures)
    if failures == 0 or weight <= 0:
        return low
    return low + weight * (min(low, _gamma_quantile(2 * tail, failures) / size) - low)


def _gamma_quantile(chance: float, shape: float) -> float:
    """Return where the gamma distribution's probability is ``chance``, for shapes up to a few."""
    if _gamma_below(shape, sys.float_info.min) >= chance:
        return 0.0  # no float is as small, such as 0.05 ** 1000 for a thousandth of a failure
    low, high = 0.0, shape
    while _gamma_below(shape, high) < chance:
        high *= 2
    while high - low > _CLOSE * high:
        middle = (low + high) / 2
        low, high = (low, middle) if _gamma_below(shape, middle) > chance else (middle, high)
    return (low + high) / 2


def _gamma_below(shape: float, x: float) -> float:
    """Return the gamma distribution's probability of at most ``x``, by its power series."""
    term = total = math.exp(shape * math.log(x) - x - math.lgamma(shape + 1))
    number = 0
    while term > _SMALL_STEP * total:
        number += 1
        term *= x / (shape + number)
        total += term
    return total


def _tilted(variance: float, slope: float, t: float) -> float:
    """Solve ``x**2 == t**2 * (variance + slope * x)`` for the ``x`` with ``t``'s sign."""
    middle = t * t * slope / 2
    return middle + math.copysign(math.sqrt(t * t * variance + middle * middle), t)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    """Distinct clusters with their counts."""

    score: ScoreDefinition
    rows: FloatArray
    counts: FloatArray

    @classmethod
    def of(cls, rows: FloatArray, score: ScoreDefinition) -> _Sample:
        """Group equal clusters: they change a score equally, so one of each is left out."""
        # Sorted, so that equal clusters stand together and sums are added in one order.
        rows = rows[np.lexsort(rows.T[::-1])]
        first = np.ones(len(rows), dtype=bool)
        np.any(rows[1:] != rows[:-1], axis=1, out=first[1:])
        starts = np.flatnonzero(first)
        counts = np.diff(starts, append=len(rows)).astype(np.float64)
        return cls(score=score, rows=rows[starts], counts=counts)

    def jackknife(self, value: Callable[[Sums], FloatArray]) -> _Jackknife | None:
        """Leave out each cluster in turn; return None if that makes the score undefined."""
        totals = self.counts @ self.rows
        # The first row is the whole sample, and each of the others lacks one cluster.
        sums = np.vstack([totals, totals - self.rows])
        values = value({name: sums[:, at] for at, name in enumerate(self.score.columns)})
        if np.isnan(values).any():
            return None
        clusters, sizes = float(self.counts.sum()), np.abs(self.rows).sum(axis=1)
        second, skewness, kurtosis = self._moments((clusters - 1) * (values[0] - values[1:]))
        return _Jackknife(
            name=self.score.name,
            value=float(values[0]),
            low=self.score.low,
            high=self.score.high,
            clusters=clusters,
            effective=float((self.counts @ sizes) ** 2 / (self.counts @ sizes**2)),
            variance=second / (clusters - 1),
            skewness=skewness,
            kurtosis=kurtosis,
        )

    def _moments(self, changes: FloatArray) -> tuple[float, float, float]:
        """Return variance, skewness and kurtosis; all zero if no cluster changes the score."""
        if float(np.ptp(changes)) <= _CONSTANT_BELOW * self.counts.sum():
            return 0.0, 0.0, 0.0
        # Equal clusters were left out once, and count as often as there are of them.
        shares = self.counts / self.counts.sum()
        changes = changes - shares @ changes
        squares = changes * changes
        second = float(shares @ squares)
        third, fourth = float(shares @ (squares * changes)), float(shares @ (squares * squares))
        return second, third / second**1.5, fourth / second**2


def _largest(
    sample: _Sample, values: tuple[Callable[[Sums], FloatArray], ...], tail: float
) -> tuple[float, float] | None:
    """Return the interval of the largest of several scores.

    The largest of several equal scores is biased upwards, so that its own interval is too high. The
    upper end is the highest of all upper ends. The lower end divides its error probability among
    all scores that may be the largest (Bonferroni).
    """
    # Orders that no item has are at the lower limit, and are no rivals of the largest one.
    found = [j for j in map(sample.jackknife, values) if j is not None and j.value > j.low]
    ends = [pair for j in found if (pair := j.ends(tail, tail)) is not None]
    if not ends:
        return None
    low, high = (max(side) for side in zip(*ends, strict=True))
    # A score whose upper end is below the largest lower end can't be the largest.
    rivals = sum(upper >= low for _, upper in ends)
    if rivals > 1:
        shared = (j.ends(2 * tail / rivals, tail) for j in found)
        low = max(pair[0] for pair in shared if pair is not None)
    return low, high


def upper_t(tail: float, degrees: float) -> float:
    """Return the quantile of Student's t distribution with the probability ``tail`` above it.

    With ``x = sqrt(degrees) * tan(angle)`` the density is a power of ``cos(angle)``. Its integral
    is concave, so that Newton's steps from the normal quantile's angle never overshoot.

    Args:
        tail: Above 0 and below one half.
        degrees: Degrees of freedom, at least 1; infinity gives the normal quantile.
    """
    # Here: the module brings fractions, which commands without intervals need not wait for.
    from statistics import NormalDist

    z = -NormalDist().inv_cdf(tail)
    if degrees >= _MANY_DEGREES:
        # The first term of the expansion of Student's quantile in 1 / degrees.
        return z + (z**3 + z) / (4 * degrees)
    nodes, weights = _legendre()
    gammas = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)
    scale = math.exp(gammas) / math.sqrt(math.pi)
    angle = math.atan(z / math.sqrt(degrees))
    for _ in range(_MOST_STEPS):
        mass = scale * angle * float(weights @ np.cos(angle * nodes) ** (degrees - 1))
        step = (0.5 - tail - mass) / (scale * math.cos(angle) ** (degrees - 1))
        # Near a right angle the quadrature is too inexact to keep Newton's step below it.
        angle = min(angle + step, (angle + math.pi / 2) / 2)
        if step < _SMALL_STEP * angle:
            break
    return math.sqrt(degrees) * math.tan(angle)


@cache
def _legendre() -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights of the Gauss-Legendre quadrature on [0, 1]."""
    # With 64 nodes, quantiles for 99 % are exact to eleven digits, and for 99.9 % to seven.
    nodes, weights = np.polynomial.legendre.leggauss(64)
    return (nodes + 1) / 2, weights / 2


# A grouping field may have thousands of values, which no note could list.
_NAMED = 10
_RULE = f"Intervals are unreliable below {FEW_CLUSTERS} clusters (images or videos)"


def small_sample_notes(
    scores: Mapping[str, int], groups: Mapping[str, Mapping[str, int]]
) -> tuple[str, ...]:
    """Return notes on scores and groups with too few clusters.

    Args:
        scores: Number of clusters that each score is based on.
        groups: For each field, how many clusters each of its groups has.
    """
    found = [_scores_note(scores), *[_groups_note(key, sizes) for key, sizes in groups.items()]]
    return tuple(filter(None, found))


def _scores_note(scores: Mapping[str, int]) -> str:
    few = {name: size for name, size in scores.items() if size < FEW_CLUSTERS}
    if not few:
        return ""
    # Most metrics have one number for all scores, which need not be listed then.
    if len(few) == len(scores) and len(set(few.values())) == 1:
        return f"{_RULE}; every score rests on {next(iter(few.values()))}."
    return f"{_RULE}; these scores rest on fewer: {_listed(f'{n} ({s})' for n, s in few.items())}."


def _groups_note(key: str, sizes: Mapping[str, int]) -> str:
    few = {value: size for value, size in sizes.items() if size < FEW_CLUSTERS}
    if not few:
        return ""
    listed = _listed(f"{value or '(none)'} ({size})" for value, size in few.items())
    return f"{_RULE}; {len(few)} of {len(sizes)} groups by {key} have fewer: {listed}."


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
