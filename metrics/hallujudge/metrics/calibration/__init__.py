"""Scores corrected by human labels: Rogan and Gladen's estimator, prediction-powered inference.

This module has claims with verdicts and human labels, what each of them adds to a score, a judge's
agreement with the labels, and shares corrected by its error rates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, TypeAlias

from ..framework.arrays import BoolArray, FloatArray, np
from ..framework.columns_and_scores import ScoreDefinition
from ..framework.metric import Metric

if TYPE_CHECKING:
    from numpy.typing import NDArray


Codes: TypeAlias = "NDArray[np.intp]"
"""Numbers of clusters or strata."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedClaims:
    """The claims of a run that a judge decided, one entry each, in any order."""

    verdicts: BoolArray
    """Whether the judge rejects the claim as hallucinated."""
    labels: FloatArray
    """Human labels: 1 hallucinated, 0 not, NaN without a label."""
    clusters: Codes
    """Number of the claim's image or video."""
    units: Codes
    """Number of the unit that was drawn for labelling: the claim, or its item."""
    strata: Codes
    """Number of the stratum that its unit was drawn from; all 0 for a simple random sample."""

    @property
    def labelled(self) -> BoolArray:
        """Return which claims have a label."""
        return ~np.isnan(self.labels)

    def where(self, mask: BoolArray) -> JudgedClaims:
        """Return a part of the claims."""
        return JudgedClaims(
            **{entry.name: getattr(self, entry.name)[mask] for entry in fields(self)}
        )

    def weights(self) -> FloatArray:
        """Return how many units of its stratum the unit of each labelled claim represents.

        The inverse of the share of the stratum's units that were labelled; 0 without a label.
        """
        out = np.zeros(len(self.labels))
        for stratum in np.unique(self.strata):
            here = self.strata == stratum
            drawn = here & self.labelled
            if drawn.any():
                out[drawn] = len(np.unique(self.units[here])) / len(np.unique(self.units[drawn]))
        return out


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """A score as a function of verdicts: what is fixed, and what each claim adds."""

    score: ScoreDefinition
    fixed: FloatArray
    """Sums by cluster (rows) and column, with no claim hallucinated."""
    steps: FloatArray
    """What a claim (row) adds to the columns of its cluster if it is hallucinated."""

    def sums(self, hallucinated: FloatArray) -> FloatArray:
        """Return the columns' sums.

        Args:
            hallucinated: For each claim 1, 0 or a probability.
        """
        totals: FloatArray = self.fixed.sum(axis=0) + hallucinated @ self.steps
        return totals

    def value(self, hallucinated: FloatArray) -> float:
        """Return the score; NaN if it is undefined."""
        sums = self.sums(hallucinated)
        columns = {name: sums[at : at + 1] for at, name in enumerate(self.score.columns)}
        # A score that rounds its parts would swallow small corrections.
        return float((self.score.smooth or self.score.value)(columns)[0])


def effects_of(
    metric: Metric,
    score: ScoreDefinition,
    clusters: Mapping[str, FloatArray],
    *,
    adds: Sequence[tuple[str, FloatArray]],
    cluster_of: Codes,
) -> Effects:
    """Return a score as a function of verdicts.

    Derived columns, such as an image's own rate, are linear in what claims add, so that the effect
    of a claim on them is the difference that it makes alone.

    Args:
        metric: The metric, which derives columns.
        score: The score.
        clusters: Sums of the metric's statistics by cluster, with no claim hallucinated.
        adds: Columns and what each claim adds to them.
        cluster_of: The cluster of each claim.
    """
    fixed = metric.derive(clusters)
    alone = {name: column[cluster_of] for name, column in clusters.items()}
    without = {name: fixed[name][cluster_of] for name in score.columns}
    for name, amount in adds:
        alone[name] = alone[name] + amount
    added = metric.derive(alone)
    return Effects(
        score=score,
        fixed=np.column_stack([fixed[name] for name in score.columns]),
        steps=np.column_stack([added[name] - without[name] for name in score.columns]),
    )


# A share this close to 0 or 1 is either, but for rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A share of labelled claims with its interval."""

    value: float | None
    """The share; None without any claim of the kind."""
    ci_low: float | None
    """Lower end of the interval."""
    ci_high: float | None
    """Upper end of the interval."""
    n: int
    """Number of labelled claims of the kind."""
    size: float
    """Effective number, which is lower if weights differ or claims of a cluster are alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAccuracy:
    """Agreement of a judge with labels. A positive is a hallucinated claim."""

    sensitivity: Rate
    """Share of hallucinated claims that the judge rejects."""
    specificity: Rate
    """Share of other claims that the judge accepts."""
    precision: Rate
    """Share of rejected claims that are hallucinated."""
    agreement: Rate
    """Share of claims with equal verdict and label."""


def judge_accuracy(claims: JudgedClaims, *, confidence: float = 0.95) -> JudgeAccuracy:
    """Return how well a judge agrees with labels.

    Each labelled claim counts for as many claims as it represents in its stratum, so that the
    rates of a stratified sample are those of the whole run. Intervals are Jeffreys', with the
    effective number of labels.
    """
    labelled = claims.where(claims.labelled)
    weights = claims.weights()[claims.labelled]
    wrong = labelled.labels == 1
    rejected = labelled.verdicts

    def rate(of: BoolArray, hits: BoolArray) -> Rate:
        return _rate(weights[of], hits[of], labelled.clusters[of], confidence)

    return JudgeAccuracy(
        sensitivity=rate(wrong, rejected),
        specificity=rate(~wrong, ~rejected),
        precision=rate(rejected, wrong),
        # Every labelled claim has a weight.
        agreement=rate(weights > 0, rejected == wrong),
    )


def _rate(
    weights: FloatArray,
    hits: BoolArray,
    clusters: Codes,
    confidence: float,
) -> Rate:
    if not len(weights):
        return Rate(value=None, ci_low=None, ci_high=None, n=0, size=0.0)
    total = float(weights.sum())
    share = float(weights @ hits) / total
    __, places = np.unique(clusters, return_inverse=True)
    sizes = np.bincount(places, weights=weights)
    # Kish's effective number of clusters is the most that the labels can be worth.
    size = total**2 / float((sizes**2).sum())
    spread = np.bincount(places, weights=weights * (hits - share))
    variance, binomial = float((spread**2).sum()) / total**2, share * (1 - share)
    if min(variance, binomial) > _ROUNDING:
        size = min(size, binomial / variance)
    low, high = jeffreys_interval(share, size, confidence)
    return Rate(
        value=round(share, 12),
        ci_low=round(low, 12),
        ci_high=round(high, 12),
        n=len(weights),
        size=size,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginBin:
    """Verdicts with similar margins."""

    low: float
    """The smallest margin."""
    high: float
    """The largest margin."""
    n: int
    """Number of verdicts."""
    agreement: float
    """Share of them that agree with the truth."""
    stated: float | None
    """Mean probability that the judge states for them; None if margins state none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """How agreement grows with the margin, and how well stated probabilities fit."""

    bins: tuple[MarginBin, ...]
    """Bins of about equal size, by growing margin."""
    ece: float | None
    """Expected calibration error over the bins; None without stated probabilities."""
    brier: float | None
    """Brier score of stated probabilities, 0 at best; None without them."""


def stated_probabilities(margins: FloatArray) -> FloatArray:
    """Return the probability that an answer states by its log-probability margin over its rival.

    Of two choices whose log-probabilities differ by m, the likelier one has 1 / (1 + exp(-m)).
    """
    # exp() of more than 709 overflows; from 700 on, the probability is 0 or 1 anyway.
    stated: FloatArray = 1 / (1 + np.exp(-np.clip(margins, -700, 700)))
    return stated


def reliability(
    margins: FloatArray,
    right: BoolArray,
    weights: FloatArray,
    stated: FloatArray | None = None,
    *,
    bins: int = 5,
) -> Reliability:
    """Return how margins and agreement go together.

    The expected calibration error is the mean over bins of the distance between agreement and mean
    stated probability (Naeini et al., Obtaining Well Calibrated Probabilities Using Bayesian
    Binning, AAAI 2015), here with bins of equal size (Nixon et al., Measuring Calibration in Deep
    Learning, 2019). The Brier score is the mean squared distance of probability and outcome
    (Brier, Verification of Forecasts Expressed in Terms of Probability, 1950).

    Args:
        margins: How sure the judge is of each verdict.
        right: Whether each verdict agrees with the truth.
        weights: How many verdicts each one represents.
        stated: The probability that each verdict states to be right; None if margins state none.
        bins: Number of bins; verdicts with equal margins share one.
    """
    if not len(margins):
        return Reliability(bins=(), ece=None, brier=None)
    # Equal margins share the place in the middle of theirs.
    _, same, counts = np.unique(margins, return_inverse=True, return_counts=True)
    middles = np.cumsum(counts) - counts / 2
    places = (bins * middles / len(margins)).astype(np.intp)[same]
    made, error = [], 0.0
    for place in np.unique(places):
        here = places == place
        share = _mean(right[here].astype(np.float64), weights[here])
        mean_stated = None if stated is None else _mean(stated[here], weights[here])
        if mean_stated is not None:
            error += float(weights[here].sum()) * abs(share - mean_stated)
        made.append(
            MarginBin(
                low=float(margins[here].min()),
                high=float(margins[here].max()),
                n=int(here.sum()),
                agreement=share,
                stated=mean_stated,
            )
        )
    if stated is None:
        return Reliability(bins=tuple(made), ece=None, brier=None)
    brier = _mean((stated - right) ** 2, weights)
    return Reliability(bins=tuple(made), ece=error / float(weights.sum()), brier=brier)


def _mean(values: FloatArray, weights: FloatArray) -> float:
    return float(values @ weights) / float(weights.sum())


# Quantiles are exact to the twelve decimals that results are rounded to.
_CLOSE = 1e-12
# The continued fraction needs about as many steps as the root of its parameters.
_MOST_STEPS = 10_000
# Lentz's method replaces a zero denominator by a tiny number.
_TINY = 1e-300


def jeffreys_interval(share: float, size: float, confidence: float) -> tuple[float, float]:
    """Return Jeffreys' interval of a share.

    Its ends are quantiles of the beta distribution with the parameters ``failures + 1/2`` and
    ``successes + 1/2``. The lower end is 0 without failures, the upper end 1 without successes
    (Brown, Cai and DasGupta, Interval estimation for a binomial proportion, 2001, section 4.1.2).

    Args:
        share: The observed share.
        size: Number of observations; may be an effective number.
        confidence: How often the interval holds the true share.
    """
    tail = (1 - confidence) / 2
    failures = min(max(share, 0.0), 1.0) * size
    one, other = failures + 0.5, max(size - failures, 0.0) + 0.5
    low = beta_quantile(tail, one, other) if failures > _CLOSE * size else 0.0
    high = beta_quantile(1 - tail, one, other) if failures < size * (1 - _CLOSE) else 1.0
    return low, high


# Thresholds and groups often have the same counts, and bisection takes dozens of steps.
@lru_cache(maxsize=4096)
def beta_quantile(chance: float, one: float, other: float) -> float:
    """Return where the beta distribution's probability is ``chance``, by bisection."""
    low, high = 0.0, 1.0
    while high - low > _CLOSE * high:
        middle = (low + high) / 2
        low, high = (low, middle) if _beta_below(middle, one, other) > chance else (middle, high)
    return (low + high) / 2


def _beta_below(x: float, one: float, other: float) -> float:
    """Return the regularised incomplete beta function.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.5.8, a continued fraction;
    26.5.2 turns it round where it converges slowly.
    """
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if turned := x > (one + 1) / (one + other + 2):
        x, one, other = 1 - x, other, one
    gammas = math.lgamma(one + other) - math.lgamma(one) - math.lgamma(other)
    front = math.exp(gammas + one * math.log(x) + other * math.log1p(-x))
    below = front / (one * _fraction(x, one, other))
    return 1 - below if turned else below


def _fraction(x: float, one: float, other: float) -> float:
    """Return the continued fraction of 26.5.8 by Lentz's method (1976)."""
    value, upper, lower = 1.0, 1.0, 0.0
    for step in range(1, _MOST_STEPS):
        m = step // 2
        if step % 2:
            term = -(one + m) * (one + other + m) / ((one + 2 * m) * (one + 2 * m + 1))
        else:
            term = m * (other - m) / ((one + 2 * m - 1) * (one + 2 * m))
        lower = 1 / _away_from_zero(1 + term * x * lower)
        upper = _away_from_zero(1 + term * x / upper)
        change = upper * lower
        value *= change
        if abs(change - 1) < _CLOSE / 100:
            break
    return value


def _away_from_zero(number: float) -> float:
    return number if abs(number) > _TINY else _TINY


LEAST_INFORMATION = 1.2
"""Least sum of sensitivity and specificity of a usable judge. At 1 a judge is no better than
chance, and near 1 the error of the estimate grows without limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreEstimate:
    """A score with its interval."""

    value: float
    """The score."""
    ci_low: float | None
    """Lower end of the interval over images; None without an interval."""
    ci_high: float | None
    """Upper end of the interval over images."""

    @property
    def width(self) -> float | None:
        """Return the width of the interval."""
        if self.ci_low is None or self.ci_high is None:
            return None
        return self.ci_high - self.ci_low


def rogan_gladen(
    claims: JudgedClaims,
    effects: Effects,
    accuracy: JudgeAccuracy,
    *,
    raw_size: float,
    confidence: float = 0.95,
) -> ScoreEstimate | None:
    """Return a score corrected for a judge's sensitivity and specificity.

    With sensitivity ``se`` and specificity ``sp``, a judge rejects the share ``raw = true * se +
    (1 - true) * (1 - sp)`` of claims, so that

        true = (raw + sp - 1) / (se + sp - 1)

    (Rogan and Gladen, Estimating prevalence from the results of a screening test, American Journal
    of Epidemiology 107, 1978). The labels may be of other claims than those of the run, as long as
    the judge errs alike on both.

    Columns are corrected by the formula, and the score is computed from them. The interval is Lang
    and Reiczigel's (Confidence limits for prevalence of disease adjusted for estimated sensitivity
    and specificity, Preventive Veterinary Medicine 113, 2014): it adds the errors of the raw share,
    the sensitivity and the specificity, each moved towards one half as by Agresti and Coull.

    Args:
        claims: The claims.
        effects: What they add to the score.
        accuracy: The judge's sensitivity and specificity, from labels of any claims.
        raw_size: How many independent claims the raw score is worth.
        confidence: How often the interval holds the true score.

    Returns:
        The corrected score; None if labels lack hallucinated or other claims, if the sum of
        sensitivity and specificity is below 1.2, or if no share fits the labels' error rates: the
        judge would reject more claims of a run without hallucinations than it did, or less of a
        run without other claims.
    """
    se, sp = accuracy.sensitivity, accuracy.specificity
    if se.value is None or sp.value is None or se.value + sp.value < LEAST_INFORMATION:
        return None
    verdicts = claims.verdicts.astype(np.float64)
    everything, nothing = np.ones_like(verdicts), np.zeros_like(verdicts)
    # The score runs from one end to the other as the share of hallucinated claims does.
    start, end = effects.value(nothing), effects.value(everything)
    raw = effects.value(verdicts)
    # A score that verdicts do not change says nothing of their share.
    if math.isnan(raw) or math.isnan(start + end) or start == end:
        return None
    share = (raw - start) / (end - start)
    ends = _ends(share, raw_size, se, sp, confidence)
    # Both ends were cut off at 0, or at 1: no share fits the error rates.
    if ends[0] == ends[1]:
        return None
    found = [start + (end - start) * number for number in (_true(share, se, sp), *ends)]
    value, low, high = (
        round(min(max(number, effects.score.low), effects.score.high), 12) for number in found
    )
    return ScoreEstimate(value=value, ci_low=min(low, high), ci_high=max(low, high))


def _true(share: float, se: Rate, sp: Rate) -> float:
    assert se.value is not None, "checked by the caller"
    assert sp.value is not None, "checked by the caller"
    return min(max((share + sp.value - 1) / (se.value + sp.value - 1), 0.0), 1.0)


def _ends(share: float, size: float, se: Rate, sp: Rate, confidence: float) -> tuple[float, float]:
    """Return Lang and Reiczigel's interval of the true share; both ends are equal if none fits."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    raw = (size * share + z * z / 2) / (size + z * z)
    one, other = _towards_half(se), _towards_half(sp)
    slope = one + other - 1
    true = (raw + other - 1) / slope
    se_variance = one * (1 - one) / (se.size + 2)
    sp_variance = other * (1 - other) / (sp.size + 2)
    shift = 2 * z * z * (true * se_variance - (1 - true) * sp_variance)
    raw_variance = raw * (1 - raw) / (size + z * z)
    error = math.sqrt(raw_variance + (1 - true) ** 2 * sp_variance + true**2 * se_variance) / slope
    low, high = (min(max(true + shift + sign * z * error, 0.0), 1.0) for sign in (-1, 1))
    return low, high


def _towards_half(rate: Rate) -> float:
    assert rate.value is not None, "checked by the caller"
    return (rate.size * rate.value + 1) / (rate.size + 2)
