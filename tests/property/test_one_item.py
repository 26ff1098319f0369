"""The report on one item, which is made without arrays, against the one of a table."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.worker_tasks import RULE_METRICS

from hallujudge.judge_service.engine import ScoreSpec
from hallujudge.judge_service.engine.registry import open_pipeline
from hallujudge.judge_service.engine.resources import Resources
from hallujudge.metrics import IntervalSettings, ItemResult, Metric, Outcome, Report, Tally

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
@settings(max_examples=25)
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
    assert report_of(metric, results, []) == replace(of_table, groups={}, notes=notes)
