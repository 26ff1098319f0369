"""Rogan and Gladen's estimator: a share corrected for a judge's sensitivity and specificity.

With sensitivity ``se`` and specificity ``sp``, a judge rejects the share ``raw = true * se +
(1 - true) * (1 - sp)`` of claims, so that

    true = (raw + sp - 1) / (se + sp - 1)

(Rogan and Gladen, Estimating prevalence from the results of a screening test, American Journal of
Epidemiology 107, 1978). The labels may be of other claims than those of the run, as long as the
judge errs alike on both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from .claims import Effects, JudgedClaims
from .judge_accuracy import JudgeAccuracy, Rate

__all__ = ["LEAST_INFORMATION", "RoganGladen", "rogan_gladen"]

LEAST_INFORMATION = 1.2
"""Least sum of sensitivity and specificity of a usable judge. At 1 a judge tells nothing, and near
1 the error of the estimate grows without limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoganGladen:
    """A score corrected by Rogan and Gladen's estimator."""

    value: float
    """The score, within its range."""
    ci_low: float
    """Lower end of the interval, which both samples widen: the run's images and the labels."""
    ci_high: float
    """Upper end of the interval."""


def rogan_gladen(
    claims: JudgedClaims,
    effects: Effects,
    accuracy: JudgeAccuracy,
    *,
    raw_size: float,
    confidence: float = 0.95,
) -> RoganGladen | None:
    """Return a score corrected for a judge's sensitivity and specificity.

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
    import numpy as np

    se, sp = accuracy.sensitivity, accuracy.specificity
    if se.value is None or sp.value is None or se.value + sp.value < LEAST_INFORMATION:
        return None
    verdicts = claims.verdicts.astype(np.float64)
    everything, nothing = np.ones_like(verdicts), np.zeros_like(verdicts)
    # The score runs from one end to the other as the share of hallucinated claims does.
    start, end = effects.value(nothing), effects.value(everything)
    raw = effects.value(verdicts)
    if math.isnan(raw) or math.isnan(start + end) or start == end:
        return None
    share = (raw - start) / (end - start)
    ends = _ends(share, raw_size, se, sp, confidence)
    if ends[0] == ends[1]:
        return None
    found = [start + (end - start) * number for number in (_true(share, se, sp), *ends)]
    value, low, high = (
        round(min(max(number, effects.score.low), effects.score.high), 12) for number in found
    )
    return RoganGladen(value=value, ci_low=min(low, high), ci_high=max(low, high))


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
