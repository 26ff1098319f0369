"""What the HTML page shows of Tri-HE's claims and judges."""

from __future__ import annotations

from hallujudge.metrics import ItemResult, JsonValue, Outcome
from hallujudge.metrics.framework.claims import ClaimVerdict, Verdict
from hallujudge.metrics.framework.triplets import Triplet
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


def claim(*, score: float | None, margin: float) -> ClaimVerdict:
    return ClaimVerdict(
        triplet=Triplet("man", "rides", "bike"),
        verdict=Verdict.SUPPORTED,
        score=score,
        margin=margin,
        judge="judge",
    )


def test_a_language_models_margin_says_how_much_likelier_its_answer_is() -> None:
    reasons = dict(view_of(claim(score=None, margin=2.302585)).claims[0].reasons)
    assert reasons["margin"] == "2.3026 (its answer is 10.0 times as likely as the next one)"
    assert "similarity" not in reasons


def test_a_matchers_margin_is_a_distance() -> None:
    reasons = dict(view_of(claim(score=0.7, margin=0.1)).claims[0].reasons)
    assert (reasons["similarity"], reasons["margin"]) == ("0.7000", "0.1000")


def test_judges_are_shown_in_order_with_what_they_declined() -> None:
    declined: JsonValue = {"REPLY_INVALID": {"claims": 2, "detail": "no last line"}}
    first: dict[str, JsonValue] = {"judge": "llama", "answered": 1, "declined": declined}
    second: dict[str, JsonValue] = {"judge": "gpt", "answered": 2, "declined": {}}
    told = dict(view_of(claim(score=None, margin=1.0), first, second).facts)
    assert told["judge 1"] == "llama: 1 verdict; none on 2 claims: REPLY_INVALID, no last line"
    assert told["judge 2"] == "gpt: 2 verdicts"
