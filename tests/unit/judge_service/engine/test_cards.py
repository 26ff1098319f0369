"""Report cards that cannot be used: those without a judge, and of no run."""

from __future__ import annotations

import json

import pytest

from hallujudge.judge_service.engine.judge_quality import card_of, card_sha256
from hallujudge.judge_service.engine.spec import ScoreSpec
from hallujudge.judge_service.errors import InvalidInputError
from hallujudge.sdk import Client


def card(**change: object) -> str:
    content: dict[str, object] = {
        "schema": "hallujudge.judge-card/1",
        "judge": "tiny,prompt",
        "accuracy": {
            "agreement": {"value": 0.9, "ci_low": 0.8, "ci_high": 0.95},
            "sensitivity": {"value": 0.75},
            "specificity": {"value": None},
        },
        "compared_with": "labels",
        "labels": 1200,
        "yes_bias": {"difference": -0.02},
        "reliability": {"ece": 0.031},
        "flips": [{"change": "20 claims a call", "share": 0.1}, {"change": "other", "share": None}],
    }
    content |= change
    return json.dumps(content | {"sha256": card_sha256(content)})


def spec(text: str) -> ScoreSpec:
    return ScoreSpec(metric="tri-he", options={"card": text})


def test_the_main_figures_are_in_the_note() -> None:
    found = card_of(spec(card()), ["tiny>big,prompt>prompt", "tiny,prompt", "big,prompt"])
    assert found is not None
    assert found.note.partition(" of tiny: ")[2] == (
        "it agrees with labels on 90.0% [80.0%, 95.0%] of 1,200 verdicts; rejects 75.0% of "
        "hallucinated claims; says supported 2.0% too seldom; has an expected calibration error of "
        "0.031."
    )
    assert card_of(spec(""), ["tiny,prompt"]) is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (card(), "this run's is 'big,prompt'"),
        (card(schema="other"), "its schema is 'other'"),
        (card(labels="many"), "not a judge's report card: a value in it is of another kind"),
        (card(accuracy=None), "not a judge's report card"),
        ("[" * 100_000, "not a judge's report card"),
    ],
)
def test_other_cards_are_refused(text: str, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        card_of(spec(text), ["big,prompt"])


def test_a_run_without_a_judge_has_no_card() -> None:
    given = {"1": {"split": "entire", "judgement": "Yes."}}
    with (
        Client.embedded() as client,
        pytest.raises(
            InvalidInputError, match="the option card is about a judge, but no judge is asked"
        ),
    ):
        client.score("event-hallusion", responses=given, options={"card": card()})
