"""Which verdicts of a judge can be kept: the smallest margin at which they agree with labels.

A cascade keeps the verdicts whose margin is at least a threshold and leaves the others to a better
judge, or undecided. The threshold is learnt from a random sample of labels. Agreement on kept
claims shall be at least an asked-for level, with an asked-for confidence.

Thresholds are tested from large to small, each by the exact binomial test of the hypothesis that
agreement is below the level, until one is not rejected. Such a fixed sequence needs no correction
for the number of tests: for a false promise, the first true hypothesis of the sequence must be
rejected (Angelopoulos et al., Learn then Test: Calibrating Predictive Algorithms to Achieve Risk
Control, arXiv:2110.01052, section 3). Few claims have the largest margins, so that one error there
would end a sequence. There are two: one starts where a quarter of the claims is kept, the other
where all are, each with half of the error probability. Thresholds are quantiles of the margins and
do not depend on labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .judge_accuracy import beta_quantile

if TYPE_CHECKING:
    from ..framework.columns_and_scores import FloatArray
    from .judged_claims import JudgedClaims


_STEPS = 20
# Of the thresholds, from the smallest: where all claims are kept, and where a quarter is.
_STARTS = (0, 15)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cascade:
    """A threshold of the margin, and what it promises."""

    escalate_below: float | None
    """Verdicts with a smaller margin are not kept; None if none can be."""
    target: float
    """The asked-for agreement of kept verdicts."""
    confidence: float
    """How often a threshold that is learnt like this keeps its promise."""
    kept: float
    """Share of the run's claims that are kept."""
    agreement: float | None
    """Agreement on labelled claims that are kept; None if none is."""
    at_least: float | None
    """Lower limit of that agreement at the confidence."""
    labels: int
    """Labelled claims that are kept."""


def learn_cascade(
    claims: JudgedClaims, margins: FloatArray, *, target: float, confidence: float = 0.95
) -> Cascade:
    """Return the smallest threshold that keeps the promise.

    Labels of a stratified sample count for the claims they represent, and the test is that of their
    effective number (Kish), which is then an approximation.

    Args:
        claims: The claims, of which some have labels.
        margins: How sure the judge is of each claim; NaN if unknown, which is never kept. At least
            one is known.
        target: Least agreement on claims that are kept.
        confidence: How often the promise is kept.
    """
    import numpy as np

    known = np.sort(margins[~np.isnan(margins)])
    thresholds = known[len(known) * np.arange(_STEPS) // _STEPS]
    tested = _Tested(claims, margins, claims.weights())
    level = 1 - (1 - confidence) / len(_STARTS)
    reached = [_smallest(tested, thresholds[: start + 1], target, level) for start in _STARTS]
    steps = [step for step in reached if step is not None]
    if not steps:
        return Cascade(
            escalate_below=None,
            target=target,
            confidence=confidence,
            kept=0.0,
            agreement=None,
            at_least=None,
            labels=0,
        )
    threshold = float(thresholds[min(steps)])
    agreement, low, labels = tested.at(threshold, confidence)
    return Cascade(
        escalate_below=threshold,
        target=target,
        confidence=confidence,
        kept=float((margins >= threshold).mean()),
        agreement=round(agreement, 12),
        at_least=round(low, 12),
        labels=labels,
    )


def _smallest(
    tested: _Tested, thresholds: Sequence[float] | FloatArray, target: float, confidence: float
) -> int | None:
    """Return the step of the last threshold, from the largest, at which agreement is shown."""
    reached = None
    for step in range(len(thresholds) - 1, -1, -1):
        if tested.at(float(thresholds[step]), confidence)[1] < target:
            break
        reached = step
    return reached


@dataclass(frozen=True, slots=True)
class _Tested:
    """Labelled claims, to be tested above any threshold."""

    claims: JudgedClaims
    margins: FloatArray
    weights: FloatArray

    def at(self, threshold: float, confidence: float) -> tuple[float, float, int]:
        """Return agreement above a threshold, its lower limit, and the number of labels."""
        here = self.claims.labelled & (self.margins >= threshold)
        weights = self.weights[here]
        if not len(weights):
            return 0.0, 0.0, 0
        right = (self.claims.labels[here] == 1) == self.claims.verdicts[here]
        agreement = float(weights @ right) / float(weights.sum())
        size = float(weights.sum()) ** 2 / float(weights @ weights)
        hits = agreement * size
        # Clopper and Pearson's one-sided limit.
        low = beta_quantile(1 - confidence, hits, size - hits + 1) if hits > 0 else 0.0
        return agreement, low, len(weights)
