"""What the HTML page shows of Tri-HE's claims and judges."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from hallujudge.metrics import ItemResult, JsonValue, Outcome
from hallujudge.metrics.framework.claims import ClaimVerdict, Verdict
from hallujudge.metrics.framework.triplets import Sentence, Triplet
from hallujudge.metrics.tri_he.evidence import TriHeEvidence
from hallujudge.metrics.tri_he.items import TriHeItem
from hallujudge.sdk.report.item_view import ItemView
from hallujudge.sdk.report.views import view_item

ITEM = TriHeItem(
    id="q", question="What?", response="A man.", reference_triplets=(Triplet("man", "on", "bike"),)
)


def view_of(claim: ClaimVerdict, *judging: dict[str, JsonValue]) -> ItemView:
    evidence = TriHeEvidence(claims=(claim,), judging=judging)
    result = ItemResult(id="q", group_id="q", outcome=Outcome.SCORED, evidence=evidence)
    return view_item(ITEM, result)


def claim(
    *,
    score: float | None,
    margin: float,
    verdict: Verdict = Verdict.SUPPORTED,
) -> ClaimVerdict:
    return ClaimVerdict(
        triplet=Triplet("man", "rides", "bike"),
        verdict=verdict,
        score=score,
        margin=margin,
        judge="judge",
    )


def probability(claim: ClaimVerdict) -> str:
    return dict(view_of(claim).claims[0].reasons)["token probability"]


def test_a_language_models_margin_gives_the_probability_of_supported() -> None:
    reasons = dict(view_of(claim(score=None, margin=math.log(9))).claims[0].reasons)
    assert reasons["margin"] == "2.1972"
    assert reasons["token probability"] == "supported: 90.0 %"
    assert "similarity" not in reasons


def test_an_answer_that_was_not_given_has_the_rest_or_less() -> None:
    wrong = claim(score=None, margin=math.log(9), verdict=Verdict.NOT_SUPPORTED)
    assert probability(wrong) == "supported: at most 10.0 %", "another part may be the runner-up"
    assert probability(replace(wrong, triplet=Sentence("A man."))) == "supported: 10.0 %"


@pytest.mark.parametrize(
    ("margin", "told"), [(1e9, "over 99.9 %"), (0.0, "50.0 %"), (-1e9, "under 0.1 %")]
)
def test_any_margin_is_a_probability(margin: float, told: str) -> None:
    assert probability(claim(score=None, margin=margin)) == f"supported: {told}"
    wrong = claim(score=None, margin=-margin, verdict=Verdict.NOT_SUPPORTED)
    assert probability(replace(wrong, triplet=Sentence("A man."))) == f"supported: {told}"


def test_a_matchers_margin_is_a_distance() -> None:
    reasons = dict(view_of(claim(score=0.7, margin=0.1)).claims[0].reasons)
    assert (reasons["similarity"], reasons["margin"]) == ("0.7000", "0.1000")
    assert "token probability" not in reasons


def test_judges_are_shown_in_order_with_what_they_declined() -> None:
    declined: JsonValue = {"REPLY_INVALID": {"claims": 2, "detail": "no last line"}}
    first: dict[str, JsonValue] = {"judge": "llama", "answered": 1, "declined": declined}
    second: dict[str, JsonValue] = {"judge": "gpt", "answered": 2, "declined": {}}
    told = dict(view_of(claim(score=None, margin=1.0), first, second).facts)
    assert told["judge 1"] == "llama: 1 verdict; none on 2 claims: REPLY_INVALID, no last line"
    assert told["judge 2"] == "gpt: 2 verdicts"
