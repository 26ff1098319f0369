"""Ratios of sums, and the scores that are such ratios."""

from __future__ import annotations

import numpy as np
import pytest

from hallujudge.metrics.framework.columns_and_scores import ratio, share

SUMS = {
    "right": np.array([3.0, 0.0]),
    "wrong": np.array([1.0, 0.0]),
    "all": np.array([8.0, 0.0]),
}


def test_a_ratio_adds_columns_up_and_is_undefined_over_zero() -> None:
    assert ratio("right", "all")(SUMS).tolist() == pytest.approx([0.375, np.nan], nan_ok=True)
    f1 = ratio(("right", "right"), ("right", "right", "wrong"))(SUMS)
    assert f1.tolist() == pytest.approx([6 / 7, np.nan], nan_ok=True)


def test_a_share_declares_its_columns_once_and_counts_its_denominator() -> None:
    plain = share("accuracy", "right / all", "right", "all")
    assert (plain.columns, plain.count, plain.direction) == (("right", "all"), "all", "higher")
    pooled = share("f1", "harmonic mean", ("right", "right"), ("right", "wrong"), count="")
    assert (pooled.columns, pooled.count) == (("right", "wrong"), "")
