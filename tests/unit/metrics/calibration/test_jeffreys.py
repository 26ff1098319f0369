"""Jeffreys' interval and the beta distribution's quantiles."""

from __future__ import annotations

import pytest

from hallujudge.metrics.calibration.judge_accuracy import beta_quantile, jeffreys_interval


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
