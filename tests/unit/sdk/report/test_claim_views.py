"""What the HTML page shows of Tri-HE's claims and judges."""

from __future__ import annotations

import math

import pytest

from hallujudge.metrics import ItemResult, JsonValue, Outcome
from hallujudge.metrics.framework.claims import ClaimVerdict, Triplet, Verdict
from hallujudge.metrics.tri_he import TriHeEvidence, TriHeItem
from hallujudge.sdk.report.item_views import ItemView, view_item

ITEM = TriHeItem(
    id="q", question="What?", response="A man.", reference_triplets=(Triplet("man", "on", "bike"),)
)


def view_of(claim: ClaimVerdict, *judging: dict[str, JsonValue]) -> ItemView:
    evidence = TriHeEvidence(claims=(claim,), judging=judging)
    result = ItemResult(id="q", group_id="q", outcome=Outcome.SCORED, evidence=evidence)
    return view_item(ITEM, result)


def claim(*, judge: str, score: float | None, margin: float = 0.1) -> ClaimVerdict:
    return ClaimVerdict(
        triplet=Triplet("man", "rides", "bike"),
        verdict=Verdict.SUPPORTED,
        score=score,
        margin=margin,
        judge=judge,
    )


def reasons_of(claim: ClaimVerdict) -> dict[str, str]:
    return dict(view_of(claim).claims[0].reasons)


@pytest.mark.parametrize(
    ("share", "told"),
    [(0.9, "90.0 %"), (0.5, "50.0 %"), (0.9999, "over 99.9 %"), (0.0001, "under 0.1 %")],
)
def test_a_language_model_states_the_probability_of_supported(share: float, told: str) -> None:
    reasons = reasons_of(claim(judge="llm", score=share, margin=math.log(9)))
    assert reasons["token probability"] == f"supported: {told}"
    assert reasons["margin"] == "2.1972"
    assert "similarity" not in reasons


def test_a_small_judge_states_a_probability_too() -> None:
    reasons = reasons_of(claim(judge="hhem", score=0.7))
    assert (reasons["probability"], reasons["margin"]) == ("supported: 70.0 %", "0.1000")
    assert {"token probability", "similarity"}.isdisjoint(reasons)


def test_a_matchers_score_is_a_similarity() -> None:
    reasons = reasons_of(claim(judge="matcher", score=0.7))
    assert (reasons["similarity"], reasons["margin"]) == ("0.7000", "0.1000")
    assert {"token probability", "probability"}.isdisjoint(reasons)


def test_an_unknown_probability_is_not_shown() -> None:
    assert "token probability" not in reasons_of(claim(judge="llm", score=None))


def test_judges_are_shown_in_order_with_what_they_declined() -> None:
    declined: JsonValue = {"REPLY_INVALID": {"claims": 2, "detail": "no last line"}}
    first: dict[str, JsonValue] = {"judge": "llama", "answered": 1, "declined": declined}
    second: dict[str, JsonValue] = {"judge": "gpt", "answered": 2, "declined": {}}
    told = dict(view_of(claim(judge="gpt", score=None), first, second).facts)
    assert told["judge 1"] == "llama: 1 verdict; none on 2 claims: REPLY_INVALID, no last line"
    assert told["judge 2"] == "gpt: 2 verdicts"
