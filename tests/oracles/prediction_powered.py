"""Prediction-powered inference as its papers write it, for means of right-or-wrong labels.

Angelopoulos, Duchi and Zrnic, PPI++ (arXiv:2311.01453), formulas 2 and 3: the labelled and the
unlabelled sample are apart, and ``lam`` weighs the predictions.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["ppi_mean", "tuned"]


def ppi_mean(
    labels: Sequence[float],
    predictions: Sequence[float],
    unlabelled: Sequence[float],
    lam: float,
) -> float:
    """Return the mean of predictions of the unlabelled, plus the rectifier."""
    pairs = zip(labels, predictions, strict=True)
    rectifier = sum(label - lam * prediction for label, prediction in pairs) / len(labels)
    return lam * sum(unlabelled) / len(unlabelled) + rectifier


def tuned(
    labels: Sequence[float], predictions: Sequence[float], unlabelled: Sequence[float]
) -> float:
    """Return the ``lam`` of the smallest variance, with moments of the labelled sample."""
    count = len(labels)
    mean, other = sum(labels) / count, sum(predictions) / count
    pairs = zip(labels, predictions, strict=True)
    covariance = sum((label - mean) * (found - other) for label, found in pairs) / count
    variance = sum((found - other) ** 2 for found in predictions) / count
    return covariance / variance / (1 + count / len(unlabelled))
