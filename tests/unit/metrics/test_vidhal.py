"""VidHal's scores over display orders."""

from __future__ import annotations

import pytest

from hallujudge.metrics.vidhal import VidhalMcqaMetric, VidhalOrderingMetric


def test_totals_over_display_orders_of_every_shape() -> None:
    metric = VidhalOrderingMetric()
    said = ["A, B", "B, A, C", "B, C", "B, A, C", "A, B, C"]
    shown = [
        {"A": 1, "B": 2},
        {"A": 1, "B": 2, "C": 3},
        {"B": 2, "C": 1},
        {"C": 3, "B": 2, "A": 1},
        {"A": 1, "B": 2, "D": 3},
    ]
    rows = [metric.score_answer(a, (), d).statistics for a, d in zip(said, shown, strict=True)]
    got = metric.total(said, shown)
    assert [got["ndcg"], got["invalid"]] == pytest.approx([sum(r[i] for r in rows) for i in (0, 1)])
    assert got["commonest"] == 2
    alike = metric.total(said[1::2], shown[1::2])
    assert alike["ndcg"] == pytest.approx(
        2 * metric.score_answer(said[1], (), shown[1]).statistics[0]
    )


def test_choices_of_millions_of_videos_stay_small() -> None:
    assert VidhalMcqaMetric().folds, "whole numbers whose sums are all that counts"


def test_totals_over_columns() -> None:
    display = {"A": 2, "B": 1, "C": 3}
    orders = ["B, A, C", "B, A, C", "A, B", "C, A, B"]
    totals = VidhalOrderingMetric().total(orders, [display] * 4)
    assert (totals["videos"], totals["invalid"], totals["commonest"]) == (4, 1, 2)
    assert totals["ndcg"] == pytest.approx(2)
