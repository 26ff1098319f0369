"""Scores corrected by human labels: Rogan and Gladen's estimator, prediction-powered inference.

This module has claims with verdicts and human labels, and what each of them adds to a score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
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
