"""Whether the raw score is expected to be nearer than the corrected one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hallujudge.metrics.calibration.estimators import Corrected, expected_errors


def corrected(value: float, low: float, high: float) -> Corrected:
    return Corrected(
        value=value,
        ci_low=0.0,
        ci_high=1.0,
        run_low=low,
        run_high=high,
        tuning=0.5,
        influence=np.zeros(1),
    )


def test_the_raw_scores_error_is_its_estimated_bias() -> None:
    """The worked example of the documentation: 0.370 raw, 0.359 corrected."""
    found = expected_errors(0.370, corrected(0.359, 0.286, 0.422))
    error = math.sqrt((0.073**2 + 0.063**2) / 2) / 1.959964
    assert found.corrected == pytest.approx(error, abs=1e-6)
    assert found.raw == 0, "the difference is below its standard error"
    found = expected_errors(0.459, corrected(0.359, 0.286, 0.422))
    assert found.raw == pytest.approx(math.sqrt(0.1**2 - error**2), abs=1e-6)


@pytest.mark.parametrize(("times", "nearer"), [(1.41, True), (1.42, False)])
def test_the_raw_score_is_nearer_below_the_root_of_two_standard_errors(
    times: float, nearer: bool
) -> None:
    for sign in (-1, 1):
        reach = 0.02 * 1.959964
        found = expected_errors(0.5 + sign * times * 0.02, corrected(0.5, 0.5 - reach, 0.5 + reach))
        assert (found.raw < found.corrected) == nearer


def test_other_confidence_levels_give_the_same_error() -> None:
    wide = expected_errors(0.3, corrected(0.5, 0.5 - 0.0515, 0.5 + 0.0515), 0.99)
    narrow = expected_errors(0.3, corrected(0.5, 0.5 - 0.0329, 0.5 + 0.0329), 0.90)
    assert wide.corrected == pytest.approx(narrow.corrected, rel=1e-3)


def test_a_run_that_is_labelled_as_a_whole_has_no_error() -> None:
    found = expected_errors(0.3, corrected(0.3, 0.3, 0.3))
    assert (found.raw, found.corrected) == (0, 0)
