"""Plain paired comparison of a ratio: every swap and every bootstrap sample, without numpy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

__all__ = ["bootstrap_differences", "ratio_difference", "swap_p_value"]

Cluster = tuple[float, float]
"""Numerator and denominator of a cluster."""


def ratio_difference(first: Sequence[Cluster], second: Sequence[Cluster]) -> float:
    """Return the second run's ratio minus the first's; NaN where one is undefined."""
    return _ratio(second) - _ratio(first)


def swap_p_value(first: Sequence[Cluster], second: Sequence[Cluster]) -> float:
    """Return the share of all swaps whose statistic is as far from zero as the observed one."""
    observed = abs(_statistic(first, second))
    found = []
    for swaps in product((False, True), repeat=len(first)):
        pairs = [
            (b, a) if swap else (a, b) for a, b, swap in zip(first, second, swaps, strict=True)
        ]
        found.append(abs(_statistic([a for a, _ in pairs], [b for _, b in pairs])))
    extreme = sum(not value < observed * (1 - 1e-9) for value in found)
    return extreme / len(found)


def bootstrap_differences(first: Sequence[Cluster], second: Sequence[Cluster]) -> list[float]:
    """Return the difference in each of the m ** m equally likely samples, in ascending order."""
    clusters = range(len(first))
    found = (
        ratio_difference([first[at] for at in drawn], [second[at] for at in drawn])
        for drawn in product(clusters, repeat=len(first))
    )
    return sorted(value for value in found if not math.isnan(value))


def _ratio(clusters: Sequence[Cluster]) -> float:
    bottom = sum(below for _, below in clusters)
    return sum(above for above, _ in clusters) / bottom if bottom else math.nan


def _statistic(first: Sequence[Cluster], second: Sequence[Cluster]) -> float:
    """Return the difference over its standard error by the delta method of a ratio."""
    difference = ratio_difference(first, second)
    if math.isnan(difference):
        return math.nan
    squares = sum((b - a) ** 2 for a, b in zip(_changes(first), _changes(second), strict=True))
    if difference == 0:
        return 0.0
    if squares < 1e-20:
        squares = 0.0
    return difference / math.sqrt(squares) if squares else math.copysign(math.inf, difference)


def _changes(clusters: Sequence[Cluster]) -> Iterator[float]:
    """Yield how much each cluster moves the ratio."""
    ratio, bottom = _ratio(clusters), sum(below for _, below in clusters)
    return ((above - ratio * below) / bottom for above, below in clusters)
