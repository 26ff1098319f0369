"""Thresholds of margins: what they promise, and how often they keep it."""

from __future__ import annotations

import numpy as np
import pytest

from hallujudge.metrics.calibration import JudgedClaims
from hallujudge.metrics.calibration.calibrated_scores import Cascade, learn_cascade


def drawn(
    rng: np.random.Generator, labels: int, *, worst: float = 0.6, size: int = 2_000
) -> tuple[JudgedClaims, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """Claims of which those with a margin above one half are right; below, a share of them is."""
    margins = rng.random(size)
    right = (margins > 0.5) | (rng.random(size) < worst)
    verdicts = rng.random(size) < 0.3
    known = np.full(size, np.nan)
    chosen = rng.choice(size, labels, replace=False)
    known[chosen] = (verdicts == right)[chosen]
    claims = JudgedClaims(
        verdicts=verdicts,
        labels=known,
        clusters=np.arange(size),
        units=np.arange(size),
        strata=np.zeros(size, dtype=np.intp),
    )
    return claims, margins


def learnt(labels: int, seed: int = 0, *, worst: float = 0.6, target: float = 0.9) -> Cascade:
    return learn_cascade(*drawn(np.random.default_rng(seed), labels, worst=worst), target=target)


def test_the_threshold_leaves_out_uncertain_claims() -> None:
    found = learnt(400)
    # Agreement above a threshold t below one half is (0.5 + 0.6 (0.5 - t)) / (1 - t): 0.9 at 1/3.
    assert found.escalate_below is not None
    assert 0.33 < found.escalate_below < 0.5
    assert 0.5 < found.kept < 0.67
    assert found.at_least is not None
    assert found.agreement is not None
    assert found.agreement > found.at_least > 0.9


def test_everything_is_kept_where_the_judge_is_good() -> None:
    found = learnt(300, worst=0.99)
    assert found.kept == 1
    assert found.labels == 300


def test_a_few_labels_promise_nothing() -> None:
    found = learnt(20)
    assert (found.escalate_below, found.kept, found.agreement) == (None, 0.0, None)


def test_promises_are_kept() -> None:
    """In at least 95 % of 100 samples agreement is 90 % or more."""
    broken = 0
    for seed in range(100):
        threshold = learnt(200, seed).escalate_below
        if threshold is not None and threshold < 0.5:
            broken += (0.5 + 0.6 * (0.5 - threshold)) / (1 - threshold) < 0.9
    assert broken <= 5


def test_labels_of_a_stratum_count_for_its_claims() -> None:
    """Uncertain claims are labelled four times as often, and count no more for that."""
    margins = np.array([0.2] * 100 + [0.8] * 100)
    known = np.full(200, np.nan)
    known[:80], known[100:120] = [1.0] * 60 + [0.0] * 20, 1.0
    claims = JudgedClaims(
        verdicts=np.ones(200, dtype=bool),
        labels=known,
        clusters=np.arange(200),
        units=np.arange(200),
        strata=np.array([0] * 100 + [1] * 100),
    )
    found = learn_cascade(claims, margins, target=0.5)
    assert found.agreement == pytest.approx((0.75 + 1) / 2)


def test_claims_without_a_margin_are_never_kept() -> None:
    claims, margins = drawn(np.random.default_rng(0), 400)
    margins[::4] = np.nan
    found = learn_cascade(claims, margins, target=0.9)
    assert found.escalate_below is not None
    assert found.kept == (margins >= found.escalate_below).mean()
    everything = learn_cascade(claims, margins, target=0.5)
    assert everything.escalate_below == np.nanmin(margins)
    assert everything.kept == 0.75
