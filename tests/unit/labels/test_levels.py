"""Means of means: Tri-HE's scores from labels are those of verdicts that say the same."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from support.messages import expected_message

from hallujudge.labels.calibration_tables import calibration_page
from hallujudge.labels.human_labels import Label
from hallujudge.labels.verdicts import DecidedClaim, DecidedItem
from hallujudge.metrics import IntervalSettings, ItemResult, Outcome, Report, Tally, TriHeMetric
from hallujudge.metrics.calibration.calibrated_scores import Calibration
from hallujudge.sdk.archives.stored_files import stored_value
from hallujudge.sdk.calibration import CalibrateOptions, calibrate_items
from hallujudge.sdk.errors import InvalidInputError
from hallujudge.sdk.report.table_pages import render_page

# Image -> questions -> verdict and label of each claim.
ANSWERS: dict[str, list[list[tuple[int, int]]]] = {
    "1": [[(1, 1), (0, 0)], [(1, 0), (0, 0), (0, 1)]],
    "2": [[(0, 0), (0, 0), (0, 1), (1, 1)]],
    "3": [[(1, 0)], [(0, 0), (1, 1)], [(0, 1), (0, 0), (1, 1)]],
}


def statistics(wrong: list[int]) -> dict[str, float]:
    metric = TriHeMetric(judge="j")
    found: dict[str, float] = dict.fromkeys((column.name for column in metric.columns), 0.0)
    return found | {
        "claims": len(wrong),
        "hallucinated": sum(wrong),
        "rate": sum(wrong) / len(wrong),
    }


def test_margins_are_learnt_where_verdicts_have_them() -> None:
    report, items = run(0)
    labels = [
        Label(item=item.id, claim=claim.index, hallucinated=claim.hallucinated)
        for item in items
        for claim in item.claims
    ]
    metric = TriHeMetric(judge="j")
    with pytest.raises(
        InvalidInputError,
        match=expected_message("labels.run_calibration:verdicts-have-no-margins"),
    ):
        calibrate_items(report, metric, items, labels, agreement=0.8)
    sure = [
        replace(item, claims=tuple(replace(claim, margin=0.5) for claim in item.claims))
        for item in items
    ]
    found = calibrate_items(report, metric, sure, labels, agreement=0.7)
    assert found.cascade is not None
    assert (found.cascade.escalate_below, found.cascade.kept) == (0.5, 1.0)
    assert stored_value(json.loads(found.to_text()), Calibration) == found
    assert expected_message(
        "labels.calibration_tables:verdicts-that-agree-with-labels-in"
    ) in render_page(calibration_page(found))
    with pytest.raises(
        InvalidInputError,
        match=expected_message("labels.run_calibration:agreement-is-give-share"),
    ):
        CalibrateOptions(agreement=1.5)


def run(place: int) -> tuple[Report, list[DecidedItem]]:
    """Report and items by verdicts (0) or by labels (1)."""
    metric = TriHeMetric(judge="j")
    tally, items = Tally(metric), []
    for image, questions in ANSWERS.items():
        for number, claims in enumerate(questions):
            found = statistics([claim[place] for claim in claims])
            name = f"{image}/{number}"
            tally.add(
                ItemResult(
                    id=name,
                    group_id=image,
                    outcome=Outcome.SCORED,
                    statistics=tuple(found[column.name] for column in metric.columns),
                )
            )
            decided = tuple(
                DecidedClaim(index=index, text="", hallucinated=bool(claim[place]))
                for index, claim in enumerate(claims)
            )
            items.append(
                DecidedItem(
                    id=name, cluster=image, statistics=found, claims=decided, fields={}, response=""
                )
            )
    return tally.finish(IntervalSettings(), version="0"), items


def test_labels_of_everything_give_their_own_scores() -> None:
    (report, items), (expected, _) = run(0), run(1)
    labels = [
        Label(item=f"{image}/{number}", claim=index, hallucinated=bool(label))
        for image, questions in ANSWERS.items()
        for number, claims in enumerate(questions)
        for index, (_, label) in enumerate(claims)
    ]
    found = calibrate_items(report, TriHeMetric(judge="j"), items, labels)
    assert list(found.scores) == ["hallu_q", "hallu_i"]
    for name, score in found.scores.items():
        assert score.corrected is not None
        assert score.corrected.value == pytest.approx(expected[name].value)
        assert report[name].value != pytest.approx(expected[name].value)
