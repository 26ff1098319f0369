"""Differences of a ratio equal those of a plain implementation."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles.paired_comparison import bootstrap_differences, ratio_difference, swap_p_value
from support.sizes import examples

from hallujudge.metrics import ScoreDefinition
from hallujudge.metrics.framework.columns_and_scores import ratio
from hallujudge.metrics.framework.comparison import (
    ComparisonSettings,
    PairedClusters,
    PairedDifference,
    paired_differences,
)

RATE = ScoreDefinition(
    name="rate", columns=("top", "bottom"), value=ratio("top", "bottom"), high=float("inf")
)
CLUSTER = st.tuples(st.integers(0, 4), st.integers(1, 6))


def compared(
    first: list[tuple[int, int]], second: list[tuple[int, int]], replicates: int
) -> PairedDifference:
    sides = (np.array(rows, dtype=np.float64) for rows in (first, second))
    one, other = ({"top": side[:, 0], "bottom": side[:, 1]} for side in sides)
    pair = PairedClusters(first=one, second=other)
    [[found]] = paired_differences([([RATE], pair)], ComparisonSettings(replicates=replicates))
    return found


@given(st.lists(st.tuples(CLUSTER, CLUSTER), min_size=1, max_size=6))
@settings(deadline=None)
def test_few_clusters_are_swapped_in_every_way(
    pairs: list[tuple[tuple[int, int], tuple[int, int]]],
) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    found = compared(first, second, 1000)
    assert found.difference is not None
    assert abs(found.difference - ratio_difference(first, second)) < 1e-11
    assert found.p == swap_p_value(first, second)


@given(st.lists(st.tuples(CLUSTER, CLUSTER), min_size=4, max_size=5))
@settings(deadline=None, max_examples=examples(20))
def test_ends_are_quantiles_of_all_samples(
    pairs: list[tuple[tuple[int, int], tuple[int, int]]],
) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    found = compared(first, second, 4000)
    assert found.ci_low is not None
    assert found.ci_high is not None
    samples = bootstrap_differences(first, second)
    assume(samples[0] < samples[-1])
    # The widened percentile: t of 3 or 4 degrees leaves at most 1 % beyond each end.
    below = bisect_left(samples, found.ci_low - 1e-9) / len(samples)
    above = 1 - bisect_right(samples, found.ci_high + 1e-9) / len(samples)
    assert max(below, above) < 0.01
