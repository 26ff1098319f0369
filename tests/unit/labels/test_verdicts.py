"""Verdicts of runs of every family that labels can correct."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.metric_runs import RUNS

from hallujudge.labels.human_labels import Label, match_labels
from hallujudge.labels.labelled_claims import sampling_of
from hallujudge.labels.verdicts import CLAIMS_OF, DecidedItem, answer_claims, read_verdicts
from hallujudge.metrics import Report
from hallujudge.sdk import Client
from hallujudge.sdk.calibration import calibrate_items
from hallujudge.sdk.runs import read_run

CASES: dict[str, dict[str, Any]] = {
    "chair, mentions": {**RUNS["chair"](), "metric": "chair"},
    "chair, objects": {
        "metric": "chair",
        "responses": {"1": "A dog, a dog, a cat and a dog.", "2": "A cat and a car."},
        "references": {"1": ["cat"], "2": ["cat", "car"]},
        "options": {"count": "objects"},
    },
    "seen-claims": {
        "metric": "seen-claims",
        "responses": [
            {"image": f"{number}.jpg", "claims": [{"claim": "A dog.", "verdict": said}]}
            for number, said in enumerate(("supported", "not_supported", "supported"))
        ],
    },
    "event-hallusion": {**RUNS["event-hallusion"](), "metric": "event-hallusion"},
}


def decided(folder: Path, metric: str, **run: Any) -> tuple[Report, Any, list[DecidedItem]]:
    with Client.embedded() as client:
        client.score(metric, **run).save(folder)
    stored = read_run(folder)
    return stored.report, stored.metric, list(read_verdicts(stored))


def labels_of(items: list[DecidedItem], *, flipped: bool = False) -> list[Label]:
    return [
        Label(item=item.id, claim=claim.index, hallucinated=claim.hallucinated != flipped)
        for item in items
        for claim in item.claims
        if claim.hallucinated is not None
    ]


@pytest.mark.parametrize("name", CASES)
def test_labels_that_agree_give_the_scores_of_the_run(tmp_path: Path, name: str) -> None:
    report, metric, items = decided(tmp_path, **CASES[name])
    found = calibrate_items(report, metric, items, labels_of(items))
    assert set(found.scores) == {score for column in metric.judged for score in column.scores}
    for score in found.scores.values():
        assert score.raw is not None
        assert score.corrected is not None
        assert score.corrected.value == pytest.approx(score.raw.value)


def test_opposite_labels_turn_a_share_round(tmp_path: Path) -> None:
    report, metric, items = decided(tmp_path, **CASES["chair, objects"])
    found = calibrate_items(report, metric, items, labels_of(items, flipped=True))
    corrected = found["chair_i"].corrected
    assert corrected is not None
    # One of two objects and none of two are hallucinated; the others are by the labels.
    assert (report["chair_i"].value, corrected.value) == (0.25, 0.75)
    assert corrected.value == pytest.approx(1 - 0.25)


def test_every_kind_of_verdict_is_here() -> None:
    assert {case["metric"] for case in CASES.values()} | {"tri-he"} == set(CLAIMS_OF)


def test_items_are_drawn_if_their_claims_are_labelled_together(tmp_path: Path) -> None:
    _, __, items = decided(tmp_path, **CASES["chair, objects"])
    labels = labels_of(items)
    assert sampling_of(items, match_labels(labels, items), None).by == "item"
    assert sampling_of(items, match_labels(labels[:1], items), None).by == "claim"


@pytest.mark.parametrize(
    ("judge", "margin", "sure"),
    [
        ("matcher", -0.2, 0.2),
        ("minicheck", 0.3, 0.3),
        ("llm", 1.5, 1.5),
        # Held to a choice that the model found less likely than another answer.
        ("fallback", -1.5, -1.5),
        ("llm", None, None),
    ],
)
def test_margins_say_how_sure_a_judge_is(
    judge: str, margin: float | None, sure: float | None
) -> None:
    claim = {
        "triplet": ["a", "b", "c"],
        "verdict": "not_supported",
        "margin": margin,
        "judge": judge,
    }
    [found] = answer_claims({"claims": [claim]}, {})
    assert found.margin == sure
