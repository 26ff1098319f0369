"""Scores of a judge that sees and errs at known rates, corrected by 100 labels, hold the truth."""

from __future__ import annotations

import numpy as np
import pytest
from support.sizes import further, sized

from hallujudge.metrics.calibration import JudgedClaims, effects_of
from hallujudge.metrics.calibration.prediction_powered import prediction_powered
from hallujudge.metrics.seen_claims import SeenClaimsMetric

RUNS, RESPONSES, LABELS, SHARE = sized(200, 2_000), 150, 100, 0.25
METRIC = SeenClaimsMetric(judge="simulated")
# Coverage of 95 % has a standard error of 1.5 points in 200 runs, and of half a point in 2,000.
LEAST, MOST = sized((0.90, 0.99), (0.935, 0.965))
HERE = "test_corrected_scores_cover_the_truth_and_beat_labels_alone"


@pytest.mark.parametrize(
    ("name", "column", "judge"),
    [
        ("claim_hallucination", "hallucinated", (0.85, 0.9)),
        further(HERE, "response_hallucination", "rate", (0.85, 0.9)),
        further(HERE, "claim_hallucination", "hallucinated", (0.7, 0.8)),
    ],
)
def test_corrected_scores_cover_the_truth_and_beat_labels_alone(
    name: str, column: str, judge: tuple[float, float]
) -> None:
    [score] = (each for each in METRIC.scores if each.name == name)
    rng = np.random.default_rng([58, round(100 * sum(judge)), len(name)])
    held, held_run, widths, alone = [], [], [], []
    for _ in range(RUNS):
        lengths = rng.integers(2, 7, RESPONSES)
        of = np.repeat(np.arange(RESPONSES), lengths)
        size = len(of)
        shares = rng.beta(4 * SHARE, 4 * (1 - SHARE), RESPONSES)
        truth = rng.random(size) < shares[of]
        verdicts = np.where(truth, rng.random(size) < judge[0], rng.random(size) < 1 - judge[1])
        labels = np.full(size, np.nan)
        drawn = rng.choice(size, LABELS, replace=False)
        labels[drawn] = truth[drawn]
        sums = {each.name: np.zeros(RESPONSES) for each in METRIC.columns}
        sums |= {"claims": lengths.astype(float), METRIC.unit: np.ones(RESPONSES)}
        amounts = np.ones(size) if column == "hallucinated" else 1 / lengths[of]
        effects = effects_of(METRIC, score, sums, adds=[(column, amounts)], cluster_of=of)
        claims = JudgedClaims(
            verdicts=verdicts,
            labels=labels,
            clusters=of,
            units=np.arange(size),
            strata=np.zeros(size, dtype=np.intp),
        )
        found = prediction_powered(claims, effects)
        other = prediction_powered(claims, effects, verdicts=False)
        assert found is not None, "there are labels"
        assert other is not None, "there are labels"
        held.append(found.ci_low <= SHARE <= found.ci_high)
        held_run.append(found.run_low <= effects.value(truth.astype(float)) <= found.run_high)
        widths.append(found.ci_high - found.ci_low)
        alone.append(other.ci_high - other.ci_low)
    assert LEAST <= np.mean(held) <= MOST
    assert LEAST <= np.mean(held_run) <= MOST
    assert np.mean(widths) < 0.95 * np.mean(alone)
