"""Intervals: their arithmetic, their properties, and how often they hold the true value."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from random import Random
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.messages import expected_message
from support.report_samples import report as sample_report

from hallujudge.metrics import (
    ChairMetric,
    IntervalSettings,
    ItemResult,
    Outcome,
    Report,
    ScoreDefinition,
    Tally,
    TriHeMetric,
    VidhalOrderingMetric,
)
from hallujudge.metrics.framework.arrays import FloatArray
from hallujudge.metrics.framework.columns_and_scores import ratio
from hallujudge.metrics.framework.intervals import (
    rounded,
    score_interval,
    small_sample_notes,
    upper_t,
)
from hallujudge.sdk.report import HtmlPage, render_markdown, render_table

if TYPE_CHECKING:
    from hallujudge.metrics.framework.columns_and_scores import Sums

RATE = ScoreDefinition(name="rate", columns=("wrong", "all"), value=ratio("wrong", "all"))
LENGTH = replace(RATE, name="length", high=math.inf)
DIFFERENCE = replace(RATE, name="difference", low=-1.0)
INTERVALS = IntervalSettings()
Z = NormalDist().inv_cdf(0.975)

rates = st.lists(
    st.integers(1, 9).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    min_size=2,
    max_size=40,
)


def ends(
    rows: object, score: ScoreDefinition = RATE, intervals: IntervalSettings = INTERVALS
) -> tuple[float, float]:
    found = score_interval(np.array(rows, dtype=np.float64), score, intervals)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("tail", "degrees", "expected"),
    # scipy.stats.t.ppf(1 - tail, degrees), SciPy 1.17
    [
        (0.1, 1, 3.0776835371752544),
        (0.1, 4.4, 1.5066723927994843),
        (0.025, 1, 12.706204736174694),
        (0.025, 1.5, 6.016663104427929),
        (0.025, 2.7, 3.3921483831737507),
        (0.025, 23, 2.0686576104190486),
        (0.025, 30.5, 2.04086944518632),
        (0.025, 1000, 1.9623390808264083),
        (0.025, 1e6, 1.959966356814107),
        (0.005, 10, 3.16927267261695),
        (0.0005, 1.5, 82.84744670366369),
        (0.0005, 100, 3.390491311164263),
        (0.025, math.inf, 1.959963984540054),
    ],
)
def test_quantiles_of_t_are_scipys(tail: float, degrees: float, expected: float) -> None:
    assert upper_t(tail, degrees) == pytest.approx(expected, rel=1e-9)


def wilson(share: float, size: float, t: float) -> tuple[float, float]:
    middle = share + t * t / (2 * size)
    reach = t * math.sqrt(share * (1 - share) / size + (t / size) ** 2 / 4)
    return (middle - reach) / (1 + t * t / size), (middle + reach) / (1 + t * t / size)


def test_single_answers_have_wilsons_interval() -> None:
    """The jackknife's variance of a share is ``share * (1 - share) / (n - 1)``."""
    found = ends([(1, 1)] * 30 + [(0, 1)] * 170)
    # Right-or-wrong answers leave the variance no noise of its own; four imagined clusters do.
    degrees = 2 * 199 * 204 / (4 * 2)
    assert found == pytest.approx(wilson(0.15, 199, upper_t(0.025, degrees)), abs=1e-7)
    assert found == pytest.approx(wilson(0.15, 200, Z), abs=1e-3)


def test_clusters_of_equal_answers_count_once() -> None:
    """Ten times the same answer about an image say as much as one."""
    assert ends([(10, 10)] * 30 + [(0, 10)] * 170) == pytest.approx(
        ends([(1, 1)] * 30 + [(0, 1)] * 170)
    )


def test_means_have_students_interval() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(0.5, 0.05, 400)
    found = ends(np.column_stack([values, np.ones(400)]))
    reach = 1.966 * values.std(ddof=1) / 20
    assert found == pytest.approx((values.mean() - reach, values.mean() + reach), abs=2e-4)


@pytest.mark.parametrize("clusters", [2, 24, 1000])
def test_nothing_and_everything_have_an_interval(clusters: int) -> None:
    reach = Z * Z / (clusters + Z * Z)
    assert ends([(0, 3)] * clusters) == pytest.approx((0.0, reach), abs=1e-9)
    assert ends([(3, 3)] * clusters) == pytest.approx((1 - reach, 1.0), abs=1e-9)


def test_a_score_that_rounds_has_the_interval_of_what_it_rounds() -> None:
    rows = [(0, 2), (1, 3), (2, 2), (1, 4), (3, 5)]
    rounded = replace(RATE, value=lambda sums: np.round(RATE.value(sums), 1), smooth=RATE.value)
    assert ends(rows, rounded) == ends(rows)
    assert ends(rows, replace(rounded, smooth=None)) != ends(rows)


def test_zero_of_unequal_clusters_is_less_sure() -> None:
    """One cluster that has nearly all mentions counts for nearly all; empty ones for nothing."""
    equal = ends([(0, 5)] * 20)
    assert ends([(0, 5)] * 20 + [(0, 0)] * 30) == equal
    assert ends([(0, 1)] * 19 + [(0, 500)])[1] > 2 * equal[1]


def test_the_same_rate_in_every_cluster_still_has_a_width() -> None:
    low, high = ends([(1, 3)] * 24)
    assert low < 1 / 3 - 0.1
    assert high > 1 / 3 + 0.1


@pytest.mark.parametrize("clusters", [2, 5])
@pytest.mark.parametrize("rate", [1e-3, 1e-7, 1e-300])
def test_the_same_small_probability_in_every_cluster_has_an_interval(
    rate: float, clusters: int
) -> None:
    """The lower end of a thousandth of a failure is below the smallest float."""
    low, high = ends([(rate, 1)] * clusters)
    assert low == 0
    assert high == pytest.approx(ends([(0, 1)] * clusters)[1], abs=2e-3)
    low, high = ends([(1 - rate, 1)] * clusters)
    assert low == pytest.approx(ends([(1, 1)] * clusters)[0], abs=2e-3)
    assert high == 1


@given(rates, st.floats(0.5, 0.99))
def test_intervals_hold_the_value_and_stay_in_range(
    rows: list[tuple[int, int]], confidence: float
) -> None:
    found = score_interval(
        np.array(rows, dtype=np.float64), RATE, IntervalSettings(confidence=confidence)
    )
    assert found is not None
    value = sum(wrong for wrong, _ in rows) / sum(total for _, total in rows)
    assert 0.0 <= found[0] <= value + 1e-12
    assert value - 1e-12 <= found[1] <= 1.0
    assert found[1] - found[0] > 0


@given(rates, st.randoms())
def test_the_order_of_clusters_does_not_show(rows: list[tuple[int, int]], rng: Random) -> None:
    shuffled = list(rows)
    rng.shuffle(shuffled)
    assert ends(shuffled) == ends(rows)


@given(rates)
def test_intervals_widen_with_the_confidence(rows: list[tuple[int, int]]) -> None:
    widths = [
        high - low
        for confidence in (0.01, 0.5, 0.8, 0.95, 0.9999)
        for low, high in [ends(rows, RATE, IntervalSettings(confidence=confidence))]
    ]
    assert widths == sorted(widths)


def test_lengths_have_no_upper_limit() -> None:
    low, high = ends([(words, 1) for words in (5, 8, 9, 11, 12, 15, 90)], LENGTH)
    value = 150 / 7
    assert 0 < low < value < high
    assert high - value > 2 * (value - low), "one long text moves the upper end"
    same = np.array([(9.0, 1.0)] * 24)
    assert score_interval(same, LENGTH, INTERVALS) is None, "without variance nothing is known"


def test_differences_are_symmetric_about_zero() -> None:
    low, high = ends([(1, 1)] * 30 + [(-1, 1)] * 30 + [(0, 1)] * 10, DIFFERENCE)
    assert low == pytest.approx(-high, abs=1e-12)
    assert 0.2 < high < 0.25
    low, high = ends([(-1, 1)] * 24, DIFFERENCE)
    assert (low, high) == pytest.approx((-1, 2 * Z * Z / (24 + Z * Z) - 1), abs=1e-9)


def test_a_score_outside_of_its_range_is_an_error() -> None:
    with pytest.raises(
        ValueError,
        match=expected_message("metrics.framework.intervals:rate-is-outside-its-range-from-to"),
    ):
        ends([(2, 1), (3, 1)])


@pytest.mark.parametrize("rows", [[], [(1, 2)], [(1, 2), (0, 0), (0, 0)]])
def test_one_cluster_has_no_interval(rows: list[tuple[int, int]]) -> None:
    table = np.array(rows, dtype=np.float64).reshape(-1, 2)
    assert score_interval(table, RATE, INTERVALS) is None


def test_a_score_that_one_cluster_defines_has_no_interval() -> None:
    """A mean of two ratios, of which a single cluster has the second's denominator."""

    def mean(sums: Sums) -> FloatArray:
        return (ratio("a", "b")(sums) + ratio("c", "d")(sums)) / 2

    score = ScoreDefinition(name="mean", columns=("a", "b", "c", "d"), value=mean)
    alone = np.array([[1.0, 2, 0, 0], [0, 2, 0, 0], [1, 2, 1, 2]])
    assert score_interval(alone, score, INTERVALS) is None
    assert score_interval(np.vstack([alone, [0, 2, 0, 1]]), score, INTERVALS) is not None


def chance(failures: int, answers: int, rate: float) -> float:
    return math.comb(answers, failures) * rate**failures * (1 - rate) ** (answers - failures)


@pytest.mark.parametrize("answers", [24, 50, 200, 1000])
def test_intervals_of_rare_failures_hold_the_true_value(answers: int) -> None:
    """Exact coverage for rates at which 0.01 to 10 failures are expected, and for the opposite."""
    most = 40 if answers > 40 else answers
    wrong = [ends([(1, 1)] * n + [(0, 1)] * (answers - n)) for n in range(most + 1)]
    right = [ends([(0, 1)] * n + [(1, 1)] * (answers - n)) for n in range(most + 1)]
    for expected in np.linspace(0.01, 10, 300):
        rate = float(expected) / answers
        shares = [chance(n, answers, rate) for n in range(most + 1)]
        held = sum(p for p, (low, high) in zip(shares, wrong, strict=True) if low <= rate <= high)
        assert held >= 0.925, expected
        mirrored = sum(
            p for p, (low, high) in zip(shares, right, strict=True) if low <= 1 - rate <= high
        )
        assert mirrored == pytest.approx(held, abs=1e-6), expected


ORDERS = {score.name: score for score in VidhalOrderingMetric().scores}


def orders(*counts: int) -> FloatArray:
    """Videos by the order that they got, as columns of ones; the last column counts videos."""
    columns = len(ORDERS["regurgitation_rate"].columns)
    rows = np.zeros((sum(counts), columns))
    rows[np.arange(sum(counts)), np.repeat(np.arange(len(counts)), counts)] = 1
    rows[:, -1] = 1
    return rows


def test_the_largest_of_several_shares() -> None:
    score = ORDERS["regurgitation_rate"]
    clear = ends(orders(150, 20, 30), score)
    assert clear == pytest.approx(ends([(1, 1)] * 150 + [(0, 1)] * 50), abs=1e-12)
    close = ends(orders(52, 50, 49, 49), score)
    alone = ends([(1, 1)] * 52 + [(0, 1)] * 148)
    assert close[0] < alone[0], "chance lifts the largest of several"
    assert close[1] == alone[1]


@pytest.mark.parametrize("clusters", [50, 200])
def test_intervals_hold_the_true_value_as_often_as_they_say(clusters: int) -> None:
    """A skewed ratio: most captions are short and right, some long and often wrong."""
    rng = np.random.default_rng(3)
    total = 1 + rng.poisson(rng.choice([1, 12], size=5000, p=[0.8, 0.2]))
    wrong = rng.binomial(total, np.where(total > 6, 0.3, 0.05))
    population = np.column_stack([wrong, total]).astype(np.float64)
    truth, rounds = wrong.sum() / total.sum(), 2000
    held = 0
    for _ in range(rounds):
        low, high = ends(population[rng.integers(5000, size=clusters)])
        held += low <= truth <= high
    assert 0.935 <= held / rounds <= 0.965


def items(clusters: int, model: Callable[[int], str] = lambda _: "a") -> list[ItemResult]:
    return [
        ItemResult(
            id=str(number),
            group_id=str(number),
            outcome=Outcome.SCORED,
            statistics=(4, number % 3, 1, 2 + number % 2, 5, 9 + number),
            fields={"model": model(number)},
        )
        for number in range(clusters)
    ]


def report_of(results: list[ItemResult]) -> Report:
    tally = Tally(ChairMetric(matcher="m", graph="g"), ["model"])
    tally.add_all(results)
    return tally.finish(INTERVALS, version="1")


def test_too_few_clusters_are_noted() -> None:
    assert report_of(items(50)).notes == ()
    assert report_of([]).notes == ()
    assert report_of(items(24)).notes == (
        expected_message(
            "metrics.framework.intervals:intervals-are-unreliable-below-clusters-images-or"
        ),
        expected_message(
            "metrics.framework.intervals:intervals-are-unreliable-below-clusters-images-or-2"
        ),
    )
    grouped = report_of(items(80, lambda number: "large" if number < 60 else "small"))
    assert grouped.notes == (
        expected_message(
            "metrics.framework.intervals:intervals-are-unreliable-below-clusters-images-or-3"
        ),
    )


def test_scores_that_rest_on_fewer_clusters_are_named() -> None:
    note = " ".join(small_sample_notes({"base_accuracy": 80, "tss": 12, "rr": 49}, {}))
    assert note.endswith(
        expected_message("metrics.framework.intervals:these-scores-rest-on-fewer-tss-rr")
    )
    many = " ".join(small_sample_notes({}, {"image": {str(n): 1 for n in range(25)}}))
    assert many.endswith(", 8 (1), 9 (1) and 15 more.")


def test_the_note_is_in_every_report() -> None:
    notes = report_of(items(24)).notes
    report = replace(sample_report(), notes=notes)
    assert json.loads(report.to_text())["notes"] == list(notes)
    assert expected_message("metrics.framework.intervals:every-score-rests-on") in render_table(
        report, width=200
    )
    assert expected_message(
        "metrics.framework.intervals:every-score-rests-on-2"
    ) in render_markdown(report)
    assert expected_message(
        "metrics.framework.intervals:every-score-rests-on"
    ) in HtmlPage().render(report)


def test_means_over_images_merge_in_any_order() -> None:
    """Columns of fractions, which are added up by image first and then made into means."""
    rng = np.random.default_rng(4)
    metric = TriHeMetric(judge="j")
    results = [
        ItemResult(
            id=str(number),
            group_id=str(rng.integers(60)),
            outcome=Outcome.SCORED,
            statistics=(7, 2, 1, 1, 0, 0, *rng.integers(0, 8, 3) / 7, 0),
        )
        for number in range(300)
    ]
    reports = []
    for split in (1, 2, 3):
        parts = [Tally(metric) for _ in range(split)]
        for place in rng.permutation(300):
            parts[place % split].add(results[place])
        for part in parts[1:]:
            parts[0].merge(part)
        reports.append(parts[0].finish(INTERVALS, version="1"))
    assert reports[0] == reports[1] == reports[2]
    for score in reports[0].scores.values():
        assert score.ci_low is not None
        assert score.ci_high is not None
        assert score.value is not None
        assert score.ci_low < score.value < score.ci_high


@pytest.mark.parametrize("suffix", ["", "-65536-groups"])
def test_reports_name_the_confidence(suffix: str) -> None:
    signature = f"chair|ci:{IntervalSettings(confidence=0.9).text}{suffix}|n:1|v:1"
    assert "90% interval" in render_markdown(replace(sample_report(), signature=signature))


def test_confidences_that_differ_have_signatures_that_differ() -> None:
    texts = {IntervalSettings(confidence=c).text for c in (0.95, 0.95000001, 0.9999)}
    assert len(texts) == 3
    assert "jackknife-wilson-0.95" in texts


@pytest.mark.parametrize("number", [-204.10374491192647, 0.5, 98765.432101231, 1.0, 0.0, -1e-14])
def test_last_bits_do_not_show(number: float) -> None:
    # Thirty bits of the mantissa's last place, as in a far end that is an exponential.
    near = [number + sign * 30 * math.ulp(number) for sign in (-1, 1)]
    assert {rounded(each) for each in near} == {rounded(number)}
    assert rounded(number) == pytest.approx(number, rel=1e-11, abs=1e-12)
    assert math.copysign(1, rounded(0.0 * number)) == 1
