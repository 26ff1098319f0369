"""How well a judge agrees with labels: sensitivity, specificity, precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .jeffreys import jeffreys_interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .claims import JudgedClaims

__all__ = ["JudgeAccuracy", "Rate", "judge_accuracy"]

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

    Each labelled claim counts for as many claims as it stands for in its stratum, so that a
    stratified sample gives the rates of the whole run. Intervals are Jeffreys', with the effective
    number of labels.
    """
    labelled = claims.where(claims.labelled)
    weights = claims.weights()[claims.labelled]
    wrong = labelled.labels == 1
    rejected = labelled.verdicts

    def rate(of: NDArray[np.bool_], hits: NDArray[np.bool_]) -> Rate:
        return _rate(weights[of], hits[of], labelled.clusters[of], confidence)

    return JudgeAccuracy(
        sensitivity=rate(wrong, rejected),
        specificity=rate(~wrong, ~rejected),
        precision=rate(rejected, wrong),
        agreement=rate(weights > 0, rejected == wrong),
    )


def _rate(
    weights: NDArray[np.float64],
    hits: NDArray[np.bool_],
    clusters: NDArray[np.intp],
    confidence: float,
) -> Rate:
    import numpy as np

    if not len(weights):
        return Rate(value=None, ci_low=None, ci_high=None, n=0, size=0.0)
    total = float(weights.sum())
    share = float(weights @ hits) / total
    __, places = np.unique(clusters, return_inverse=True)
    sizes = np.bincount(places, weights=weights)
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
