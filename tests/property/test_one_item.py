"""The report on one item, which is made without arrays, against the one of a table."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from support.sizes import examples
from support.worker_tasks import RULE_METRICS

from hallujudge.judge_service.engine import ScoreSpec
from hallujudge.judge_service.engine.registry import open_pipeline
from hallujudge.judge_service.engine.resources import Resources
from hallujudge.metrics import IntervalSettings, ItemResult, Metric, Outcome, Report, Tally
from hallujudge.metrics.framework.report import OneItemReport

RESOURCES = Resources()
UNSCORED = ItemResult(id="u", group_id="u", outcome=Outcome.UNSCORED, reason="RESPONSE_EMPTY")


def metric_of(name: str) -> Metric:
    return open_pipeline(ScoreSpec(metric=name), RESOURCES).metric


def report_of(metric: Metric, results: list[ItemResult], group_by: list[str]) -> Report:
    tally = Tally(metric, group_by)
    tally.add_all(results)
    return tally.finish(IntervalSettings(), version="1")


@pytest.mark.parametrize("name", RULE_METRICS)
@given(data=st.data(), unscored=st.integers(0, 2))
@settings(max_examples=examples(25))
def test_groups_leave_the_report_on_one_item_as_it_is(
    name: str, data: st.DataObject, unscored: int
) -> None:
    metric = metric_of(name)
    numbers = st.integers(0, 3) | st.sampled_from([0.25, 1 / 3])
    row = [data.draw(st.integers(0, 3) if c.integral else numbers) for c in metric.columns]
    scored = ItemResult(
        id="1",
        group_id="1",
        outcome=Outcome.SCORED,
        statistics=tuple(map(float, row)),
        fields={"model": "m"},
    )
    results = [scored, *[UNSCORED] * unscored]
    # Groups need a table of the items.
    of_table = report_of(metric, results, ["model"])
    notes = tuple(note for note in of_table.notes if "groups by" not in note)
    of_table = replace(of_table, groups={}, notes=notes)
    assert report_of(metric, results, []) == of_table
    made = OneItemReport(metric, IntervalSettings(), version="1", settings={}).of(scored)
    assert unscored or made in (of_table, None)


@pytest.mark.parametrize("name", ["chair", "infact", "amber"])
def test_the_usual_item_needs_no_table(name: str) -> None:
    metric = metric_of(name)
    row = tuple(1.0 for _ in metric.columns)
    one = ItemResult(
        id="1",
        group_id="photo.jpg",
        outcome=Outcome.SCORED,
        statistics=row,
        question_hash="0123456789abcdef",
        reference_hash="fedcba9876543210",
    )
    maker = OneItemReport(
        metric, IntervalSettings(), version="1", settings={"a": "b"}, notes=("n",)
    )
    tally = Tally(metric)
    tally.add(one)
    known = tally.finish(IntervalSettings(), version="1", settings={"a": "b"}, notes=("n",))
    assert known.references
    assert maker.of(one) == known
    assert [maker.of(other) for other in (None, UNSCORED, structs.replace(one, statistics=()))] == [
        None
    ] * 3
