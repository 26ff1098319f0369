"""Reasons for unscored items and claims are counted."""

from __future__ import annotations

from dataclasses import dataclass

from hallujudge.metrics import ItemResult, Outcome
from hallujudge.metrics.framework.claims import ClaimVerdict, Sentence, Verdict
from hallujudge.metrics.framework.results import JsonValue
from hallujudge.sdk.runs.parts import UnscoredCounts


@dataclass(frozen=True)
class PlugInEvidence:
    """Evidence as a plug-in may have it: its class alone does not tell that it has claims."""

    claims: tuple[ClaimVerdict, ...]

    def to_json(self) -> dict[str, JsonValue]:
        return {}


def test_claims_of_any_evidence_are_counted() -> None:
    unscored = ClaimVerdict(
        triplet=Sentence("A dog."),
        judge="llm",
        verdict=Verdict.UNSCORED,
        reason="JUDGE_FAILED",
        detail="timed out",
    )
    results = [
        ItemResult(id="1", group_id="1", outcome=Outcome.SCORED),
        ItemResult(
            id="2", group_id="2", outcome=Outcome.SCORED, evidence=PlugInEvidence((unscored,) * 2)
        ),
        ItemResult(id="3", group_id="3", outcome=Outcome.UNSCORED, reason="RESPONSE_MISSING"),
    ]
    counts = UnscoredCounts()
    counts.add(results)
    assert counts.to_json() == {
        "items": {"RESPONSE_MISSING": [1, "3", ""]},
        "claims": {"JUDGE_FAILED": [2, "2", "timed out"]},
    }
