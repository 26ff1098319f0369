"""The tally against plain arithmetic."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from msgspec import structs
from support.messages import expected_message

from hallujudge.metrics import (
    ChairMetric,
    IntervalSettings,
    ItemResult,
    MergeError,
    OptionError,
    Outcome,
    Report,
    Score,
    Tally,
    UnknownVariantError,
    one_answer,
)
from hallujudge.metrics.framework import statistics_table as _rows
from hallujudge.metrics.pope import PopeMetric

METRIC = ChairMetric(matcher="m", graph="g-1@00000000")
INTERVALS = IntervalSettings()


def result(group: str, *numbers: float, model: str = "a") -> ItemResult:
    return ItemResult(
        id=f"{group}-{random.random()}",
        group_id=group,
        outcome=Outcome.SCORED,
        statistics=numbers,
        fields={"model": model},
    )


def unscored(reason: str) -> ItemResult:
    return ItemResult(id="u", group_id="u", outcome=Outcome.UNSCORED, reason=reason)


def report_of(results: list[ItemResult], intervals: IntervalSettings = INTERVALS) -> Report:
    tally = Tally(METRIC, ["model"])
    for each in results:
        tally.add(each)
    return tally.finish(intervals, version="1")


RESULTS = [
    result("1", 4, 1, 1, 2, 3, 10),
    result("2", 2, 0, 0, 2, 2, 20, model="b"),
    result("3", 0, 0, 0, 0, 5, 0),
]


def test_whole_numbers_may_be_floats_as_a_server_sends_them() -> None:
    tally, floats = Tally(METRIC), Tally(METRIC)
    tally.add_all(RESULTS)
    sent = [result("2", *map(float, RESULTS[1].statistics)), RESULTS[2]]
    floats.add_all([RESULTS[0], *sent])
    assert floats.to_bytes() == tally.to_bytes()


def test_items_that_share_their_statistics_count_as_often_as_others() -> None:
    together, one_by_one = Tally(METRIC, ["model"]), Tally(METRIC, ["model"])
    shared = [structs.replace(RESULTS[number % 3], id=str(number)) for number in range(500)]
    together.add_all(shared)
    for each in shared:
        one_by_one.add(structs.replace(each, statistics=tuple(map(float, each.statistics))))
    assert together.to_bytes() == one_by_one.to_bytes()


def test_nothing_scored_makes_no_groups() -> None:
    assert report_of([unscored("NO_CLAIMS")]).groups == {}


def test_groups_are_in_the_order_of_their_numbers() -> None:
    names = ["", "4", "04", "10", "12", "9" * 5000, "llava-7b", "llava-13b", "x"]
    results = [result(name, 1, 0, 0, 1, 1, 1, model=name) for name in names]
    for order in (results, results[::-1]):
        groups = report_of(order).groups["model"]
        assert list(groups) == ["", "04", "4", "10", "12", "9" * 5000, "llava-7b", "llava-13b", "x"]


def test_scores_are_ratios_of_sums() -> None:
    report = report_of(RESULTS)
    assert report.chair_i == 1 / 6
    assert report.chair_s == 1 / 3
    assert report.recall == 4 / 10
    assert report.mean_words == 10
    assert report.totals == {
        "captions": 3,
        "mentioned": 6,
        "hallucinated": 1,
        "captions_with_hallucination": 1,
        "recalled_objects": 4,
        "reference_objects": 10,
        "words": 30,
    }
    assert report.groups["model"]["b"]["chair_i"].value == 0.0
    assert report.groups["model"]["a"]["chair_i"].value == 1 / 4
    assert report.groups["model"]["a"]["chair_i"].n == 2


def test_nothing_is_not_a_number() -> None:
    report = report_of([])
    assert report.chair_i is None
    assert report["recall"] == Score(name="recall", value=None, ci_low=None, ci_high=None, n=0)
    only_silent = report_of([RESULTS[2]])
    assert only_silent.chair_i is None
    assert only_silent.chair_s == 0.0


def test_signature_is_pinned() -> None:
    report = report_of([*RESULTS, unscored("RESPONSE_MISSING")], IntervalSettings(confidence=0.9))
    assert report.signature == (
        "chair|var:published|match:m|graph:g-1@00000000|count:mentions"
        "|ci:jackknife-wilson-0.9|n:4|unscored:1|v:1"
    )


def test_unscored_items_count_in_coverage_and_bounds_only() -> None:
    report = report_of([*RESULTS, unscored("A"), unscored("B"), unscored("A")])
    assert report.chair_s == 1 / 3
    assert (report.coverage.items, report.coverage.scored, report.coverage.unscored) == (6, 3, 3)
    assert report.coverage.reasons == {"A": 2, "B": 1}
    assert report.coverage.bounds["chair_s"].best == 1 / 6
    assert report.coverage.bounds["chair_s"].worst == 4 / 6
    # The fullest caption mentions 4 objects, the fullest reference holds 5.
    assert report.coverage.bounds["chair_i"].worst == (1 + 12) / (6 + 12)
    assert report.coverage.bounds["recall"].best == (4 + 15) / (10 + 15)
    assert "mean_words" not in report.coverage.bounds


def test_merged_tallies_give_the_same_report() -> None:
    rng = random.Random(1)
    results = [
        result(str(rng.randrange(40)), rng.randrange(9), rng.randrange(3), 1, 2, 3, 9, model=m)
        for m in "abcab" * 30
    ]
    whole = report_of(results)
    first, second = Tally(METRIC, ["model"]), Tally(METRIC, ["model"])
    for index, each in enumerate(results):
        (second if index % 3 else first).add(each)
    second.merge(first)
    assert second.finish(IntervalSettings(), version="1") == whole
    with pytest.raises(MergeError, match="can't merge"):
        first.merge(Tally(ChairMetric(matcher="other", graph="g"), ["model"]))


def test_intervals_are_over_clusters() -> None:
    """Ten captions of one image are one draw, so their interval is wide; apart it is narrow."""
    rng = random.Random(2)
    values = [(image, rng.random() < image / 20) for image in range(20) for _ in range(10)]
    together = report_of(
        [result(str(image), 1, wrong, wrong, 0, 1, 1) for image, wrong in values],
    )
    apart = report_of(
        [
            result(f"{image}-{i}", 1, wrong, wrong, 0, 1, 1)
            for i, (image, wrong) in enumerate(values)
        ],
    )
    assert together.chair_i == apart.chair_i

    def width(report: Report) -> float:
        score = report["chair_i"]
        assert score.ci_low is not None
        assert score.ci_high is not None
        return score.ci_high - score.ci_low

    assert width(together) > 1.5 * width(apart)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 0.99999, -0.5, 95.0, math.nan, math.inf])
def test_the_confidence_is_checked(confidence: float) -> None:
    with pytest.raises(ValueError, match=f"confidence is {confidence}"):
        IntervalSettings(confidence=confidence)


def test_metric_options_are_checked() -> None:
    with pytest.raises(
        UnknownVariantError,
        match=expected_message(
            "judge_service.engine.judge_options:choose-one-of-published-corrected"
        ),
    ):
        ChairMetric(variant="best", matcher="m", graph="g")
    with pytest.raises(OptionError, match="mentions, objects"):
        ChairMetric(count="words", matcher="m", graph="g")


def test_an_unknown_score_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no score 'chair_x'"):
        _ = report_of(RESULTS).chair_x


def test_very_many_items_are_folded_without_changing_a_score(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = random.Random(3)
    results = [
        result(
            str(rng.randrange(900)),
            m := rng.randrange(9),
            m and rng.randrange(m),
            1,
            rng.randrange(4),
            3,
            9,
            model=g,
        )
        for g in "aab" * 700
    ]
    results.append(unscored("A"))
    whole = report_of(results)
    monkeypatch.setattr(_rows, "FOLD_ABOVE", 300)
    monkeypatch.setattr(_rows, "BUCKETS", 256)
    folded = report_of(results)
    assert "-groups|" in folded.signature
    assert "-groups" not in whole.signature
    assert (folded.totals, folded.coverage) == (whole.totals, whole.coverage)
    for name, score in whole.scores.items():
        other = folded[name]
        assert (other.value, other.n) == (score.value, score.n)
        assert folded.groups["model"]["b"][name].value == whole.groups["model"]["b"][name].value
        if score.ci_low is not None and score.ci_high is not None and score.ci_low < score.ci_high:
            assert other.ci_low == pytest.approx(score.ci_low, rel=0.05)
            assert other.ci_high == pytest.approx(score.ci_high, rel=0.05)
    # Neither order nor merging shows.
    rng.shuffle(results)
    assert report_of(results) == folded
    pieces = [Tally(METRIC, ["model"]) for _ in range(3)]
    for index, each in enumerate(results):
        pieces[index % 3].add(each)
    pieces[0].merge(pieces[1])
    pieces[0].merge(pieces[2])
    assert pieces[0].finish(IntervalSettings(), version="1") == folded


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("fold_above", [10**6, 300])
def test_a_tally_of_parts_that_were_bytes_is_the_same(
    monkeypatch: pytest.MonkeyPatch, size: int, fold_above: int
) -> None:
    monkeypatch.setattr(_rows, "FOLD_ABOVE", fold_above)
    rng = random.Random(4)
    results = [
        result(
            str(rng.randrange(90)),
            m := rng.randrange(9),
            m // 2,
            1,
            1,
            3,
            9,
            model=rng.choice("abc"),
        )
        for _ in range(900)
    ]
    results[5] = unscored("A")
    total = Tally(METRIC, ["model"])
    for start in range(0, len(results), size):
        part = Tally(METRIC, ["model"])
        part.add_all(results[start : start + size])
        total.merge_bytes(part.to_bytes())
    again = Tally(METRIC, ["model"])
    again.merge_bytes(total.to_bytes())
    for tally in (total, again):
        assert tally.finish(INTERVALS, version="1") == report_of(results)


def test_damaged_bytes_of_a_tally_are_refused() -> None:
    tally = Tally(METRIC, ["model"])
    tally.add_all(RESULTS)
    data = tally.to_bytes()
    other = Tally(METRIC, ["category"])
    for damaged in (b"", data[:10], data[:-1], data + b"x", data.replace(b"rows", b"cows")):
        with pytest.raises(MergeError):
            tally.merge_bytes(damaged)
    with pytest.raises(
        MergeError,
        match=expected_message("metrics.framework.tally:grouped-by-model-into-tallies-by-category"),
    ):
        other.merge_bytes(data)


def test_adding_one_by_one_or_at_once() -> None:
    metric = PopeMetric(variant="strict")
    results = []
    for n, said in enumerate(["Yes", "No", "?", None] * 25):
        scored = metric.score(one_answer(id="", response=said or "", label="yes"))
        results.append(
            ItemResult(
                id=str(n),
                group_id=str(n // 7),
                outcome=Outcome.SCORED if scored.readable else Outcome.UNSCORED,
                reason="" if scored.readable else "ANSWER_UNPARSED" if said else "RESPONSE_MISSING",
                statistics=() if said is None else scored.statistics,
                fields={"model": "ab"[n % 2]},
            )
        )
    one, whole = Tally(metric, ["model"]), Tally(metric, ["model"])
    for result in results:
        one.add(result)
    whole.add_all(results[:33])
    whole.add_all([])
    whole.add_all(results[33:])
    reports = [tally.finish(IntervalSettings(), version="0").to_text() for tally in (one, whole)]
    assert reports[0] == reports[1]


@pytest.mark.parametrize("number", [1.0, 0.1, -3.0, 2.0**52])
def test_sums_of_clusters_are_those_of_a_plain_loop(number: float) -> None:
    draw = random.Random(5)
    rows = [[draw.randrange(20), *[float(draw.randrange(9))] * 5, number] for _ in range(200)]
    found = []
    for order in (rows, random.Random(6).sample(rows, len(rows))):
        keys, *columns = (np.array(column) for column in zip(*order, strict=True))
        clusters = _rows.Table(METRIC, keys, np.ones(len(order)), columns).by_cluster()
        found.append({name: column.tolist() for name, column in clusters.columns.items()})
        for column, name in enumerate((each.name for each in METRIC.columns), start=1):
            plain = [
                math.fsum(row[column] for row in rows if row[0] == key)
                for key in sorted({row[0] for row in rows})
            ]
            assert found[-1][name] == pytest.approx(plain, rel=1e-15)
    assert found[0] == found[1]
