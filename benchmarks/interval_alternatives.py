"""Interval methods that were considered and rejected, for ``bench_intervals.py``."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from hallujudge.metrics.framework.intervals import upper_t

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hallujudge.metrics import ScoreDefinition

    Floats: TypeAlias = NDArray[np.float64]
    Method: TypeAlias = Callable[[Floats, ScoreDefinition], tuple[float, float] | None]

__all__ = ["ALTERNATIVES"]

TAIL = 0.025
REPLICATES = 999
NORMAL = NormalDist()


def _values(score: ScoreDefinition, sums: Floats) -> Floats:
    return score.value({name: sums[..., at] for at, name in enumerate(score.columns)})


def _jackknife(table: Floats, score: ScoreDefinition) -> tuple[float, Floats]:
    """Return the score and the jackknife's changes, one for each cluster."""
    totals = table.sum(axis=0)
    value = float(_values(score, totals[None])[0])
    changes = (len(table) - 1) * (value - _values(score, totals - table))
    return value, changes - changes.mean()


def _error(changes: Floats) -> float:
    return math.sqrt(float(changes @ changes) / (len(changes) - 1) / len(changes))


def _draws(table: Floats) -> NDArray[np.int64]:
    """Return the clusters of each replicate."""
    return np.random.default_rng(0).integers(len(table), size=(REPLICATES, len(table)))


def percentile(table: Floats, score: ScoreDefinition) -> tuple[float, float]:
    """The percentile bootstrap over clusters."""
    values = _values(score, table[_draws(table)].sum(axis=1))
    low, high = np.nanquantile(values, [TAIL, 1 - TAIL])
    return float(low), float(high)


def accelerated(table: Floats, score: ScoreDefinition) -> tuple[float, float]:
    """BCa: the bias-corrected and accelerated bootstrap (Efron, 1987)."""
    value, changes = _jackknife(table, score)
    values = _values(score, table[_draws(table)].sum(axis=1))
    values = values[~np.isnan(values)]
    share = (np.sum(values < value) + np.sum(values == value) / 2) / len(values)
    if not 0 < share < 1 or not changes.any():
        return value, value
    bias = NORMAL.inv_cdf(float(share))
    speed = float(np.sum(changes**3)) / (6 * float(np.sum(changes**2)) ** 1.5)
    ends = []
    for z in (NORMAL.inv_cdf(TAIL), NORMAL.inv_cdf(1 - TAIL)):
        at = NORMAL.cdf(bias + (bias + z) / (1 - speed * (bias + z)))
        ends.append(float(np.quantile(values, at)))
    return ends[0], ends[1]


def studentized(table: Floats, score: ScoreDefinition) -> tuple[float, float]:
    """The bootstrap of t, on the scale of the logit (of the logarithm for lengths)."""
    there, back, slope = _scale(score)
    value, changes = _jackknife(table, score)
    if not changes.any() or value in (0.0, 1.0):
        return value, value
    draws = _draws(table)
    values = _values(score, table[draws].sum(axis=1))
    # The changes of the whole sample stand for those of each replicate, with its own mean.
    errors = changes[draws].std(axis=1) / math.sqrt(len(table) - 1)
    with np.errstate(all="ignore"):
        t = (there(values) - there(np.array(value))) / (errors * slope(values))
    low, high = np.quantile(t[np.isfinite(t)], [TAIL, 1 - TAIL])
    middle, error = float(there(np.array(value))), _error(changes) * float(slope(np.array(value)))
    ends = back(np.array([middle - high * error, middle - low * error]))
    return float(ends[0]), float(ends[1])


def student(table: Floats, score: ScoreDefinition) -> tuple[float, float]:
    """Return the value plus or minus t times its error, with clusters - 1 degrees of freedom."""
    value, changes = _jackknife(table, score)
    reach = upper_t(TAIL, len(table) - 1) * _error(changes)
    return value - reach, value + reach


def student_of_scale(table: Floats, score: ScoreDefinition) -> tuple[float, float]:
    """Return the same interval on the logit scale (logarithmic for lengths)."""
    there, back, slope = _scale(score)
    value, changes = _jackknife(table, score)
    if not changes.any() or value in (0.0, 1.0):
        return value, value
    middle = float(there(np.array(value)))
    reach = upper_t(TAIL, len(table) - 1) * _error(changes) * float(slope(np.array(value)))
    ends = back(np.array([middle - reach, middle + reach]))
    return float(ends[0]), float(ends[1])


def _scale(
    score: ScoreDefinition,
) -> tuple[Callable[[Floats], Floats], Callable[[Floats], Floats], Callable[[Floats], Floats]]:
    """Return a transformation, its inverse and its derivative."""
    if math.isinf(score.high):
        return np.log, np.exp, lambda x: 1 / x
    return (
        lambda x: np.log(x / (1 - x)),
        lambda x: 1 / (1 + np.exp(-x)),
        lambda x: 1 / (x * (1 - x)),
    )


ALTERNATIVES: dict[str, Method] = {
    "percentile bootstrap": percentile,
    "BCa bootstrap": accelerated,
    "bootstrap-t, logit": studentized,
    "t": student,
    "t, logit": student_of_scale,
}
