"""Rows of papers' tables, with which runs are compared."""

from __future__ import annotations

import pytest

from hallujudge.judge_service.engine.registry import metric_entry, metric_names
from hallujudge.metrics.framework.published_figures import published_rows

WITH_TABLES = (
    "chair",
    "pope",
    "tri-he",
    "mementos",
    "vidhal-mcqa",
    "vidhal-ordering",
    "infact",
)


@pytest.mark.parametrize("metric", WITH_TABLES)
def test_rows_have_scores_of_the_metric_and_a_source(metric: str) -> None:
    declared = metric_entry(metric).metric
    rows = published_rows(declared)
    assert len({row.name for row in rows}) == len(rows) > 10
    assert {name for row in rows for name in row.scores} <= set(metric_entry(metric).score_names)
    assert all(0 <= value <= 1 for row in rows for value in row.scores.values())
    assert all(row.model and "table" in row.source for row in rows)


def test_other_metrics_have_no_rows() -> None:
    for metric in set(metric_names()) - set(WITH_TABLES):
        assert published_rows(metric_entry(metric).metric) == ()


@pytest.mark.parametrize(
    ("metric", "name", "scores"),
    [
        ("chair", "llava-short", {"chair_i": 0.105, "chair_s": 0.327}),
        ("pope", "instructblip-adversarial", {"f1": 0.7845, "yes_ratio": 0.6897}),
        ("tri-he", "minigpt-4", {"hallu_i": 0.536, "relation_hallu_q": 0.2498}),
        ("tri-he", "llava-nli", {"hallu_i": 0.5449, "hallu_q": 0.5151}),
        ("mementos", "instructblip-combined-daily-life", {"object_precision": 0.4114}),
        ("vidhal-mcqa", "gpt-4o", {"accuracy": 0.772}),
        ("vidhal-ordering", "gpt-4o-relative", {"ndcg": 0.826}),
        ("infact", "gpt-5.1-factuality", {"base_accuracy": 0.678, "tss": 0.402}),
    ],
)
def test_values_are_those_of_the_tables(metric: str, name: str, scores: dict[str, float]) -> None:
    (row,) = (row for row in published_rows(metric_entry(metric).metric) if row.name == name)
    assert {key: row.scores[key] for key in scores} == scores
