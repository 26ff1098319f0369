"""Means of means: Tri-HE's scores from labels are those of verdicts that say the same."""

from __future__ import annotations

import pytest

from hallujudge.metrics import IntervalSettings, ItemResult, Outcome, Report, Tally, TriHeMetric
from hallujudge.sdk.calibration import calibrate_items
from hallujudge.sdk.labels import Label
from hallujudge.sdk.verdicts import DecidedClaim, DecidedItem

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
