"""Whether the raw or the corrected score of a run is expected to be nearer to the truth.

The truth is the score that labels on all of the run would give. The corrected score is unbiased;
its mean square error is its variance. The raw score has no sampling error; its mean square error is
the square of its bias. The scores differ by that bias and by the corrected score's error, so that

    expected (raw - corrected)^2 = bias^2 + variance

The square of the difference minus the variance estimates the raw score's mean square error, as for
synthetic estimates of small areas (Rao and Molina, Small Area Estimation, 2nd edition, 2015,
chapter 3). The raw score is expected to be nearer if this is below the variance:

    |raw - corrected| < sqrt(2) * standard error of the corrected score
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from .prediction_powered import Corrected

__all__ = ["ExpectedErrors", "expected_errors"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedErrors:
    """Estimated errors of both scores: the roots of their mean square errors."""

    raw: float
    """Of the raw score; 0 if it differs from the corrected one by less than chance explains."""
    corrected: float
    """Of the corrected score."""


def expected_errors(raw: float, corrected: Corrected, confidence: float = 0.95) -> ExpectedErrors:
    """Return the estimated errors of a raw score and of the corrected one.

    The variance is that of the interval for the run. Its ends differ in their distance; the mean of
    their squares counts. So a score that no label contradicts still has an error.

    Args:
        raw: The raw score.
        corrected: The corrected score with its interval for the run.
        confidence: Confidence of that interval.
    """
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    reaches = corrected.value - corrected.run_low, corrected.run_high - corrected.value
    variance = (reaches[0] ** 2 + reaches[1] ** 2) / 2 / z**2
    square = (raw - corrected.value) ** 2 - variance
    return ExpectedErrors(raw=math.sqrt(max(square, 0.0)), corrected=math.sqrt(variance))
