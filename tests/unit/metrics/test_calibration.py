"""Jeffreys' interval, and what margins are worth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hallujudge.metrics.calibration import (
    beta_quantile,
    jeffreys_interval,
    reliability,
    stated_probabilities,
)


def test_bins_grow_with_the_margin_and_weights_count() -> None:
    margins = np.array([0.1, 0.2, 0.3, 0.4])
    right = np.array([False, True, True, True])
    found = reliability(margins, right, np.array([1.0, 3.0, 1.0, 1.0]), bins=2)
    assert [(bin.low, bin.high, bin.n) for bin in found.bins] == [(0.1, 0.2, 2), (0.3, 0.4, 2)]
    assert [bin.agreement for bin in found.bins] == [0.75, 1]
    assert found.ece is found.brier is None


def test_errors_of_stated_probabilities() -> None:
    margins = np.array([math.log(3), math.log(3), math.log(9), math.log(9)])
    stated = stated_probabilities(margins)
    assert stated == pytest.approx([0.75, 0.75, 0.9, 0.9])
    right = np.array([True, False, True, True])
    found = reliability(margins, right, np.ones(4), stated, bins=2)
    assert [bin.stated for bin in found.bins] == pytest.approx([0.75, 0.9])
    assert found.ece == pytest.approx((0.25 + 0.1) / 2)
    assert found.brier == pytest.approx((0.25**2 + 0.75**2 + 0.01 + 0.01) / 4)


def test_equal_margins_share_a_bin_and_none_is_no_bin() -> None:
    found = reliability(np.ones(5), np.ones(5, dtype=bool), np.ones(5))
    assert [bin.n for bin in found.bins] == [5]
    empty = np.array([])
    assert reliability(empty, empty.astype(bool), empty).bins == ()
    assert stated_probabilities(np.array([1e9]))[0] == 1


def test_rare_margins_are_not_hidden_by_many_equal_ones() -> None:
    for rare, common in ((0.4, 2.9), (2.9, 0.4)):
        margins = np.array([rare] * 15 + [common] * 85)
        right = np.array([False] * 15 + [True] * 85)
        found = reliability(margins, right, np.ones(100))
        sizes = {each.low: (each.high, each.n, each.agreement) for each in found.bins}
        assert sizes == {rare: (rare, 15, 0.0), common: (common, 85, 1.0)}


@pytest.mark.parametrize(
    ("chance", "one", "other", "expected"),
    # scipy.stats.beta.ppf(chance, one, other), SciPy 1.17
    [
        (0.975, 0.5, 20.5, 0.11663898290487539),
        (0.025, 5.5, 45.5, 0.03919436439418379),
        (0.975, 50.5, 50.5, 0.596826049103582),
        (0.025, 1.5, 1000.5, 0.00010781097255630273),
        (0.025, 20.5, 0.5, 0.8833610170951246),
        (0.9, 3.3, 7.7, 0.48119437455606767),
        (0.025, 500.5, 700.5, 0.3890011005633387),
    ],
)
def test_quantiles_are_scipys(chance: float, one: float, other: float, expected: float) -> None:
    assert beta_quantile(chance, one, other) == pytest.approx(expected, rel=1e-9)


def test_an_interval_ends_at_0_without_failures_and_at_1_without_successes() -> None:
    assert jeffreys_interval(0.0, 20, 0.95) == pytest.approx((0.0, 0.1166389829), rel=1e-8)
    assert jeffreys_interval(1.0, 20, 0.95) == pytest.approx((0.8833610171, 1.0), rel=1e-8)


def test_rounding_does_not_leave_the_range() -> None:
    low, high = jeffreys_interval(1 + 1e-16, 7.3, 0.95)
    assert 0 < low < high == 1.0
