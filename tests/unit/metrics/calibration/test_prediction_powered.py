"""Rogan and Gladen's estimator, prediction-powered inference, and their expected errors."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from oracles.prediction_powered import ppi_mean, tuned

from hallujudge.metrics import ScoreDefinition, TriHeMetric
from hallujudge.metrics.calibration import (
    Effects,
    JudgedClaims,
    ScoreEstimate,
    effects_of,
    judge_accuracy,
    rogan_gladen,
)
from hallujudge.metrics.calibration.prediction_powered import (
    Corrected,
    expected_errors,
    prediction_powered,
)
from hallujudge.metrics.framework.columns_and_scores import ratio

RATE = ScoreDefinition(name="rate", columns=("wrong", "all"), value=ratio("wrong", "all"))


# Label and verdict of 60 labelled claims, and the verdicts of 340 others.
LABELLED = [(1, 1)] * 16 + [(1, 0)] * 2 + [(0, 1)] * 2 + [(0, 0)] * 40


OTHERS = [1] * 130 + [0] * 210


def single(
    labelled: list[tuple[int, int]], others: list[int], strata: list[int] | None = None
) -> tuple[JudgedClaims, Effects]:
    """One claim for each image, all of one weight."""
    size = len(labelled) + len(others)
    verdicts = [verdict for _, verdict in labelled] + others
    claims = JudgedClaims(
        verdicts=np.array(verdicts, dtype=bool),
        labels=np.array([float(label) for label, _ in labelled] + [np.nan] * len(others)),
        clusters=np.arange(size),
        units=np.arange(size),
        strata=np.array(strata or [0] * size),
    )
    effects = Effects(
        score=RATE,
        fixed=np.column_stack([np.zeros(size), np.ones(size)]),
        steps=np.column_stack([np.ones(size), np.zeros(size)]),
    )
    return claims, effects


def test_a_mean_is_that_of_the_papers_formula() -> None:
    found = prediction_powered(*single(LABELLED, OTHERS))
    labels, verdicts = zip(*LABELLED, strict=True)
    lam = tuned(labels, verdicts, OTHERS)
    assert found is not None
    assert found.value == pytest.approx(ppi_mean(labels, verdicts, OTHERS, lam))
    # The package ppi-python 0.2.3: ppi_mean_pointestimate(…, lam=0.7150793650793651), and the ends
    # of ppi_mean_ci, a normal interval. Ours is skewed: two errors in 18 may be many or few.
    assert lam == pytest.approx(0.7150793650793651)
    assert found.value == pytest.approx(0.35888889, abs=1e-8)
    assert found.ci_low == pytest.approx(0.28467299, abs=0.02)
    assert found.ci_high == pytest.approx(0.43310479, abs=0.02)


def test_the_tuning_is_how_much_more_often_rejected_claims_are_hallucinated() -> None:
    found = prediction_powered(*single(LABELLED, OTHERS))
    assert found is not None
    assert found.tuning == pytest.approx(16 / 18 - 2 / 42)


def test_labels_alone_are_their_mean() -> None:
    found = prediction_powered(*single(LABELLED, OTHERS), verdicts=False)
    assert found is not None
    assert (found.value, found.tuning) == pytest.approx((18 / 60, 0.0))


def test_a_judge_without_information_leaves_the_mean_of_labels() -> None:
    labelled = [(1, 1), (1, 0), (0, 1), (0, 0)] * 15
    found = prediction_powered(*single(labelled, [1] * 300 + [0] * 40))
    assert found is not None
    assert (found.value, found.tuning) == pytest.approx((0.5, 0.0))


def test_strata_weigh_by_their_size() -> None:
    """Rejected claims are labelled ten times as often as others, and count no more for that."""
    labelled = [(1, 1)] * 30 + [(0, 1)] * 10 + [(0, 0)] * 36 + [(1, 0)] * 4
    claims, effects = single(
        labelled, [1] * 60 + [0] * 860, [1] * 40 + [0] * 40 + [1] * 60 + [0] * 860
    )
    found = prediction_powered(claims, effects)
    assert found is not None
    assert found.value == pytest.approx((100 * 30 / 40 + 900 * 4 / 40) / 1000)
    assert set(claims.weights()[:80]) == {100 / 40, 900 / 40}


def test_everything_labelled_leaves_no_doubt_about_the_run() -> None:
    found = prediction_powered(*single(LABELLED, []))
    assert found is not None
    assert found.run_low == found.value == found.run_high == pytest.approx(18 / 60)
    assert found.ci_low < 0.21 < 0.42 < found.ci_high


def test_no_error_among_the_labels_still_has_an_interval() -> None:
    found = prediction_powered(*single([(1, 1)] * 5 + [(0, 0)] * 45, [1] * 95 + [0] * 855))
    assert found is not None
    assert found.value == pytest.approx(0.1)
    assert found.run_low < 0.07
    assert found.run_high > 0.12


def test_a_verdict_with_hardly_a_label_is_believed_with_a_wide_interval() -> None:
    found = prediction_powered(*single([(0, 0)] * 50, [1] * 20 + [0] * 930))
    assert found is not None
    assert found.value == pytest.approx(0.02)
    assert found.run_low < 0.01


def test_without_labels_there_is_no_correction() -> None:
    assert prediction_powered(*single([], [1, 0, 1])) is None


def test_labels_of_one_image_count_together() -> None:
    """Whole images are right or wrong, so that fifty labels of ten images are ten."""
    labels = np.repeat([1.0] * 3 + [0.0] * 7, 5)
    claims, effects = single([(int(label), 0) for label in labels], [0] * 950)
    together = JudgedClaims(
        verdicts=claims.verdicts,
        labels=claims.labels,
        clusters=np.repeat(np.arange(200), 5),
        units=claims.units,
        strata=claims.strata,
    )
    of_images = Effects(
        score=RATE,
        fixed=np.column_stack([np.zeros(200), np.full(200, 5.0)]),
        steps=effects.steps,
    )
    alone, found = prediction_powered(claims, effects), prediction_powered(together, of_images)
    assert alone is not None
    assert found is not None
    assert found.value == alone.value
    assert found.ci_high - found.ci_low > 1.8 * (alone.ci_high - alone.ci_low)
    assert (found.run_low, found.run_high) == (alone.run_low, alone.run_high)


def hierarchy(
    verdicts: list[list[list[int]]],
) -> dict[str, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """Sums of Tri-HE's statistics by image, of verdicts by image, question and claim."""
    return {
        "questions": np.array([float(len(image)) for image in verdicts]),
        "claims": np.array([float(sum(map(len, image))) for image in verdicts]),
        "rate": np.array([sum(sum(q) / len(q) for q in image) for image in verdicts]),
        **{
            name: np.zeros(len(verdicts))
            for name in (
                "hallucinated", "hallucinated_objects", "hallucinated_relations",
                "unscored_claims", "object_rate", "relation_rate",
            )
        },
    }  # fmt: skip


@pytest.mark.parametrize("name", ["hallu_q", "hallu_i"])
def test_a_mean_of_means_is_corrected_through_its_levels(name: str) -> None:
    """With every claim labelled, the score is that of the labels."""
    judged = [[[1, 0], [1]], [[0, 0, 1, 0]], [[0], [1, 1, 0], [0, 0]]]
    truth = [[[0, 0], [1]], [[1, 0, 1, 0]], [[0], [0, 1, 0], [0, 1]]]
    metric = TriHeMetric(judge="j")
    score = next(score for score in metric.scores if score.name == name)
    cluster = [k for k, image in enumerate(judged) for q in image for _ in q]
    share = [1 / len(q) for image in judged for q in image for _ in q]
    effects = effects_of(
        metric,
        score,
        {**hierarchy(judged), "rate": np.zeros(3)},
        adds=[("rate", np.array(share))],
        cluster_of=np.array(cluster),
    )

    def flat(of: list[list[list[int]]]) -> list[int]:
        return [claim for image in of for q in image for claim in q]

    def direct(of: list[list[list[int]]]) -> float:
        sums = metric.derive(hierarchy(of))
        return float(score.value({c: sums[c].sum(keepdims=True) for c in score.columns})[0])

    assert effects.value(np.array(flat(judged), dtype=float)) == pytest.approx(direct(judged))
    claims = JudgedClaims(
        verdicts=np.array(flat(judged), dtype=bool),
        labels=np.array(flat(truth), dtype=float),
        clusters=np.array(cluster),
        units=np.arange(len(cluster)),
        strata=np.zeros(len(cluster), dtype=np.intp),
    )
    assert effects.value(claims.labels) == pytest.approx(direct(truth))
    found = prediction_powered(claims, effects)
    assert found is not None
    assert (found.value, found.run_low, found.run_high) == pytest.approx([direct(truth)] * 3)


def test_the_estimate_is_exactly_unbiased() -> None:
    """Over all samples of four of nine claims with two labels of each verdict, or more."""
    truth = [1, 1, 1, 0, 1, 0, 0, 0, 0]
    verdicts = [1, 1, 1, 1, 0, 0, 0, 0, 0]
    found = []
    for chosen in combinations(range(9), 4):
        rest = [at for at in range(9) if at not in chosen]
        if sum(verdicts[at] for at in chosen) == 2:
            made = prediction_powered(
                *single([(truth[at], verdicts[at]) for at in chosen], [verdicts[at] for at in rest])
            )
            assert made is not None
            found.append(made.value)
    assert len(found) == 60
    assert np.mean(found) == pytest.approx(4 / 9)


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


def corrected(of: JudgedClaims, *, right: bool = False) -> ScoreEstimate | None:
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
    assert wrong.ci_low is not None
    assert wrong.ci_high is not None
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


def corrected_score(value: float, low: float, high: float) -> Corrected:
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
    found = expected_errors(0.370, corrected_score(0.359, 0.286, 0.422))
    error = math.sqrt((0.073**2 + 0.063**2) / 2) / 1.959964
    assert found.corrected == pytest.approx(error, abs=1e-6)
    assert found.raw == 0, "the difference is below its standard error"
    found = expected_errors(0.459, corrected_score(0.359, 0.286, 0.422))
    assert found.raw == pytest.approx(math.sqrt(0.1**2 - error**2), abs=1e-6)


@pytest.mark.parametrize(("times", "nearer"), [(1.41, True), (1.42, False)])
def test_the_raw_score_is_nearer_below_the_root_of_two_standard_errors(
    times: float, nearer: bool
) -> None:
    for sign in (-1, 1):
        reach = 0.02 * 1.959964
        found = expected_errors(
            0.5 + sign * times * 0.02, corrected_score(0.5, 0.5 - reach, 0.5 + reach)
        )
        assert (found.raw < found.corrected) == nearer


def test_other_confidence_levels_give_the_same_error() -> None:
    wide = expected_errors(0.3, corrected_score(0.5, 0.5 - 0.0515, 0.5 + 0.0515), 0.99)
    narrow = expected_errors(0.3, corrected_score(0.5, 0.5 - 0.0329, 0.5 + 0.0329), 0.90)
    assert wide.corrected == pytest.approx(narrow.corrected, rel=1e-3)


def test_a_run_that_is_labelled_as_a_whole_has_no_error() -> None:
    found = expected_errors(0.3, corrected_score(0.3, 0.3, 0.3))
    assert (found.raw, found.corrected) == (0, 0)
