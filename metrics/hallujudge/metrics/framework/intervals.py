"""Cluster bootstrap for functions of sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .metric import FloatArray, ScoreDefinition

__all__ = ["IntervalSettings", "bootstrap_interval"]

# How many numbers one block of replicates may hold: 4 MiB, and as much again to add them up.
_BLOCK = 1 << 19


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalSettings:
    """How intervals are made."""

    replicates: int = 1000
    """Bootstrap replicates; 0 switches intervals off."""
    seed: int = 0
    """Where the random numbers start."""
    confidence: float = 0.95
    """Share of replicates that an interval holds."""

    def __post_init__(self) -> None:
        if not 0 <= self.replicates <= 100_000:
            raise ValueError(f"replicates is {self.replicates}; give a number from 0 to 100000")
        if not 0 <= self.seed < 2**64:
            raise ValueError(f"seed is {self.seed}; give a whole number from 0 to 2**64 - 1")
        if not 0 < self.confidence < 1:
            raise ValueError(f"confidence is {self.confidence}; give a number between 0 and 1")

    @property
    def text(self) -> str:
        """The settings as signatures show them."""
        if self.replicates == 0:
            return "none"
        return f"cluster-bootstrap-{self.replicates}-{float(self.confidence)!r}"


def bootstrap_interval(
    clusters: FloatArray, score: ScoreDefinition, settings: IntervalSettings
) -> tuple[float, float] | None:
    """Percentile interval of a score under resampling of clusters.

    Clusters are drawn with replacement, as many as there are. Clusters with equal sums are
    interchangeable, so that how often each *distinct* one is drawn is a multinomial: drawing those
    counts is the same bootstrap, and costs distinct clusters instead of all. It also makes the
    interval independent of the order in which items came.

    Args:
        clusters: Sums by cluster (rows) and by the score's columns (columns).
        score: The score.
        settings: Replicates, seed, confidence.

    Returns:
        Lower and upper end, or None with fewer than two clusters, without replicates, or where the
        score is undefined in every replicate. Replicates that leave it undefined (no mention was
        drawn) are left out.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapters 8.3 and 13.3.
    """
    import numpy as np

    if settings.replicates == 0 or len(clusters) < 2:
        return None
    distinct, counts = _distinct(clusters)
    shares = counts / counts.sum()
    rng = np.random.Generator(np.random.PCG64(settings.seed))
    values = np.empty(settings.replicates)
    step = max(1, _BLOCK // len(distinct))
    for start in range(0, settings.replicates, step):
        stop = min(start + step, settings.replicates)
        draws = rng.multinomial(len(clusters), shares, size=stop - start)
        sums = draws @ distinct
        values[start:stop] = score.value(
            {name: sums[:, index] for index, name in enumerate(score.columns)}
        )
    values = values[~np.isnan(values)]
    if len(values) == 0:
        return None
    tail = (1 - settings.confidence) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    # Sums of fractions may differ in the last bits between machines; an interval is no finer.
    return round(float(low), 12), round(float(high), 12)


def _distinct(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Distinct rows in lexical order, and how often each stands there."""
    import numpy as np

    order = np.lexsort(rows.T[::-1])
    rows = rows[order]
    first = np.empty(len(rows), dtype=bool)
    first[0] = True
    np.any(rows[1:] != rows[:-1], axis=1, out=first[1:])
    starts = np.flatnonzero(first)
    counts = np.diff(starts, append=len(rows)).astype(np.float64)
    return rows[starts], counts
