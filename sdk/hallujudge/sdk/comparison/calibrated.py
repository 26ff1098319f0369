"""Differences between the corrected scores of two calibrated runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from hallujudge.metrics import ScoreDefinition
from hallujudge.metrics.calibration.calibrated_scores import (
    CalibratedScore,
    Calibration,
    ScoreEstimate,
)

from .values import CorrectedDifference, Finding

__all__ = ["corrected_differences"]


def corrected_differences(
    first: Calibration, second: Calibration, scores: Sequence[ScoreDefinition]
) -> Iterator[CorrectedDifference]:
    """Yield the differences of scores that labels correct in both runs.

    Both scores err alike where an image is hard for both models. The correlation of their errors
    comes from what each image adds to them, and the interval from both scores' own intervals (Zou,
    Toward Using Confidence Intervals to Compare Correlations, Psychological Methods 12, 2007).

    Args:
        first: Calibration of the first run.
        second: Calibration of the second run.
        scores: The scores that are compared.
    """
    for score in scores:
        one, other = (each.scores.get(score.name) for each in (first, second))
        if one is None or other is None or one.recommended != "ppi++" != other.recommended:
            continue
        if one.corrected is not None and other.corrected is not None:
            yield _difference(score, one, other, one.corrected, other.corrected)


def _difference(
    score: ScoreDefinition,
    one: CalibratedScore,
    other: CalibratedScore,
    first: ScoreEstimate,
    second: ScoreEstimate,
) -> CorrectedDifference:
    correlation = _correlation(one, other)
    difference = second.value - first.value
    low = difference - _reach(_below(second), _above(first), correlation)
    high = difference + _reach(_above(second), _below(first), correlation)
    return CorrectedDifference(
        score=score.name,
        direction=score.direction,
        first=first.value,
        second=second.value,
        difference=round(difference, 12),
        ci_low=round(low, 12),
        ci_high=round(high, 12),
        labels=(one.labels, other.labels),
        finding=_finding(score, low, high),
    )


def _correlation(one: CalibratedScore, other: CalibratedScore) -> float:
    """Return the correlation of two scores' errors over the images of both runs."""
    both = one.influence.keys() & other.influence.keys()
    shared = math.fsum(one.influence[key] * other.influence[key] for key in sorted(both))
    sizes = [math.fsum(n * n for n in each.influence.values()) for each in (one, other)]
    return shared / math.sqrt(sizes[0] * sizes[1]) if all(sizes) else 0.0


def _reach(one: float, other: float, correlation: float) -> float:
    return math.sqrt(max(one * one + other * other - 2 * correlation * one * other, 0.0))


def _below(estimate: ScoreEstimate) -> float:
    return estimate.value - (estimate.value if estimate.ci_low is None else estimate.ci_low)


def _above(estimate: ScoreEstimate) -> float:
    return (estimate.value if estimate.ci_high is None else estimate.ci_high) - estimate.value


def _finding(score: ScoreDefinition, low: float, high: float) -> Finding:
    """Return what the interval shows of the second run."""
    if low <= 0 <= high:
        return "none"
    if score.direction == "neither":
        return "higher" if low > 0 else "lower"
    return "better" if (low > 0) == (score.direction == "higher") else "worse"
