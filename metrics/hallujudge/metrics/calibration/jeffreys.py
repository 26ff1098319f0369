"""Jeffreys' interval of a share, and the quantiles of the beta distribution that it needs."""

from __future__ import annotations

import math
from functools import lru_cache

__all__ = ["beta_quantile", "jeffreys_interval"]

_CLOSE = 1e-12
_MOST_STEPS = 10_000
_TINY = 1e-300


def jeffreys_interval(share: float, size: float, confidence: float) -> tuple[float, float]:
    """Return Jeffreys' interval of a share.

    Its ends are quantiles of the beta distribution with the parameters ``failures + 1/2`` and
    ``successes + 1/2``. The lower end is 0 without failures, the upper end 1 without successes
    (Brown, Cai and DasGupta, Interval estimation for a binomial proportion, 2001, section 4.1.2).

    Args:
        share: The observed share.
        size: How many observations it rests on; may be an effective number.
        confidence: How often the interval holds the true share.
    """
    tail = (1 - confidence) / 2
    failures = min(max(share, 0.0), 1.0) * size
    one, other = failures + 0.5, max(size - failures, 0.0) + 0.5
    low = beta_quantile(tail, one, other) if failures > _CLOSE * size else 0.0
    high = beta_quantile(1 - tail, one, other) if failures < size * (1 - _CLOSE) else 1.0
    return low, high


@lru_cache(maxsize=4096)
def beta_quantile(chance: float, one: float, other: float) -> float:
    """Return where the beta distribution's probability is ``chance``, by bisection."""
    low, high = 0.0, 1.0
    while high - low > _CLOSE * high:
        middle = (low + high) / 2
        low, high = (low, middle) if _beta_below(middle, one, other) > chance else (middle, high)
    return (low + high) / 2


def _beta_below(x: float, one: float, other: float) -> float:
    """Return the regularised incomplete beta function.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.5.8, a continued fraction;
    26.5.2 turns it round where it converges slowly.
    """
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if turned := x > (one + 1) / (one + other + 2):
        x, one, other = 1 - x, other, one
    gammas = math.lgamma(one + other) - math.lgamma(one) - math.lgamma(other)
    front = math.exp(gammas + one * math.log(x) + other * math.log1p(-x))
    below = front / (one * _fraction(x, one, other))
    return 1 - below if turned else below


def _fraction(x: float, one: float, other: float) -> float:
    """Return the continued fraction of 26.5.8 by Lentz's method (1976)."""
    value, upper, lower = 1.0, 1.0, 0.0
    for step in range(1, _MOST_STEPS):
        m = step // 2
        if step % 2:
            term = -(one + m) * (one + other + m) / ((one + 2 * m) * (one + 2 * m + 1))
        else:
            term = m * (other - m) / ((one + 2 * m - 1) * (one + 2 * m))
        lower = 1 / _away_from_zero(1 + term * x * lower)
        upper = _away_from_zero(1 + term * x / upper)
        change = upper * lower
        value *= change
        if abs(change - 1) < _CLOSE / 100:
            break
    return value


def _away_from_zero(number: float) -> float:
    return number if abs(number) > _TINY else _TINY
