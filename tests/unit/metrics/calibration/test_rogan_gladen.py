"""Rogan and Gladen's estimator and the judge's error rates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oracles.prediction_powered import ppi_mean, tuned

from hallujudge.metrics import ScoreDefinition
from hallujudge.metrics.calibration.estimators import RoganGladen, prediction_powered, rogan_gladen
from hallujudge.metrics.calibration.judge_accuracy import judge_accuracy
from hallujudge.metrics.calibration.judged_claims import Effects, JudgedClaims
from hallujudge.metrics.framework.columns_and_scores import ratio

RIGHT = ScoreDefinition(name="right", columns=("right", "all"), value=ratio("right", "all"))


def claims(labelled: dict[tuple[int, int], int], rejected: int, accepted: int) -> JudgedClaims:
    """Claims by label and verdict, and unlabelled ones."""
    pairs = [pair for pair, count in labelled.items() for _ in range(count)]
    size = len(pairs) + rejected + accepted
    verdicts = [verdict for _, verdict in pairs] + [1] * rejected + [0] * accepted
    return JudgedClaims(
        verdicts=np.array(verdicts, dtype=bool),
        labels=np.array([float(label) for label, _ in pairs] + [np.nan] * (rejected + accepted)),
        clusters=np.arange(size),
        units=np.arange(size),
        strata=np.zeros(size, dtype=np.intp),
    )


def effects(size: int, *, right: bool = False) -> Effects:
    """The share of hallucinated claims, or of others."""
    start, step = (1.0, -1.0) if right else (0.0, 1.0)
    return Effects(
        score=RIGHT,
        fixed=np.column_stack([np.full(size, start), np.ones(size)]),
        steps=np.column_stack([np.full(size, step), np.zeros(size)]),
    )


EXAMPLE = claims({(1, 1): 16, (1, 0): 2, (0, 1): 2, (0, 0): 40}, 130, 210)


def corrected(of: JudgedClaims, *, right: bool = False) -> RoganGladen | None:
    return rogan_gladen(of, effects(len(of.labels), right=right), judge_accuracy(of), raw_size=400)


def test_rates_are_those_of_the_labels() -> None:
    found = judge_accuracy(EXAMPLE)
    assert found.sensitivity.value == pytest.approx(16 / 18)
    assert found.specificity.value == pytest.approx(40 / 42)
    assert (found.sensitivity.n, found.specificity.n) == (18, 42)
    assert found.precision.value == pytest.approx(16 / 18)
    assert found.agreement.value == pytest.approx(56 / 60)
    # scipy.stats.beta.ppf((0.025, 0.975), 16.5, 2.5), SciPy 1.17
    assert found.sensitivity.ci_low == pytest.approx(0.6888491361, rel=1e-8)
    assert found.sensitivity.ci_high == pytest.approx(0.9761754603, rel=1e-8)


def test_labels_of_a_stratum_count_for_its_claims() -> None:
    """Half of the rejected claims are labelled and a tenth of the others."""
    found = claims({(1, 1): 40, (0, 1): 10, (1, 0): 5, (0, 0): 45}, 50, 450)
    strata = np.where(found.verdicts, 1, 0)
    rates = judge_accuracy(replace(found, strata=strata))
    assert rates.sensitivity.value == pytest.approx(80 / (80 + 50))
    assert rates.specificity.value == pytest.approx(450 / (450 + 20))


def test_the_estimate_is_the_formulas() -> None:
    found = corrected(EXAMPLE)
    assert found is not None
    assert found.value == pytest.approx((148 / 400 + 40 / 42 - 1) / (16 / 18 + 40 / 42 - 1))
    # Lang and Reiczigel's interval, by hand from their formulas.
    assert (found.ci_low, found.ci_high) == pytest.approx((0.2856, 0.5141), abs=1e-4)


def test_a_score_of_right_claims_is_one_minus_the_other() -> None:
    wrong, right = corrected(EXAMPLE), corrected(EXAMPLE, right=True)
    assert wrong is not None
    assert right is not None
    assert right.value == pytest.approx(1 - wrong.value)
    assert (right.ci_low, right.ci_high) == pytest.approx((1 - wrong.ci_high, 1 - wrong.ci_low))


def test_the_same_holds_for_prediction_powered_inference() -> None:
    size = len(EXAMPLE.labels)
    wrong = prediction_powered(EXAMPLE, effects(size))
    right = prediction_powered(EXAMPLE, effects(size, right=True))
    assert wrong is not None
    assert right is not None
    labels = [1] * 18 + [0] * 42
    verdicts = [1] * 16 + [0] * 2 + [1] * 2 + [0] * 40
    others = [1] * 130 + [0] * 210
    assert wrong.value == pytest.approx(
        ppi_mean(labels, verdicts, others, tuned(labels, verdicts, others))
    )
    assert (
        right.value,
        right.ci_low,
        right.ci_high,
        right.run_low,
        right.run_high,
    ) == pytest.approx(
        (
            1 - wrong.value,
            1 - wrong.ci_high,
            1 - wrong.ci_low,
            1 - wrong.run_high,
            1 - wrong.run_low,
        )
    )


def test_a_judge_that_tells_next_to_nothing_is_refused() -> None:
    assert corrected(claims({(1, 1): 11, (1, 0): 9, (0, 1): 8, (0, 0): 12}, 100, 100)) is None


def test_one_kind_of_labels_is_not_enough() -> None:
    assert corrected(claims({(0, 1): 20, (0, 0): 40}, 100, 200)) is None


def test_error_rates_that_fit_no_share_give_no_estimate() -> None:
    """Mostly rejected claims were labelled: half of the true ones are rejected, 4 % of the run."""
    chosen = claims({(1, 1): 20, (1, 0): 1, (0, 1): 30, (0, 0): 30}, 0, 1_000)
    found = judge_accuracy(chosen)
    assert (found.sensitivity.value, found.specificity.value) == pytest.approx((20 / 21, 0.5))
    assert corrected(chosen) is None
    assert corrected(chosen, right=True) is None
