"""What a judge's margins are worth: agreement by margin, calibration error, Brier score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..framework.metric import FloatArray

__all__ = ["MarginBin", "Reliability", "reliability", "stated_probabilities"]


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
    import numpy as np

    stated: FloatArray = 1 / (1 + np.exp(-np.clip(margins, -700, 700)))
    return stated


def reliability(
    margins: FloatArray,
    right: NDArray[np.bool_],
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
        weights: How many verdicts each one stands for.
        stated: The probability that each verdict states to be right; None if margins state none.
        bins: Number of bins; verdicts with equal margins share one.
    """
    import numpy as np

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
        told = None if stated is None else _mean(stated[here], weights[here])
        error += 0.0 if told is None else float(weights[here].sum()) * abs(share - told)
        made.append(
            MarginBin(
                low=float(margins[here].min()),
                high=float(margins[here].max()),
                n=int(here.sum()),
                agreement=share,
                stated=told,
            )
        )
    if stated is None:
        return Reliability(bins=tuple(made), ece=None, brier=None)
    brier = _mean((stated - right) ** 2, weights)
    return Reliability(bins=tuple(made), ece=error / float(weights.sum()), brier=brier)


def _mean(values: FloatArray, weights: FloatArray) -> float:
    return float(values @ weights) / float(weights.sum())
