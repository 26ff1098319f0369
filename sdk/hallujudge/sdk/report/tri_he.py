"""View of Tri-HE items."""

from __future__ import annotations

from collections.abc import Iterator

from hallujudge.metrics import Evidence, Item, ItemResult
from hallujudge.metrics.framework.claims import ClaimVerdict, Verdict
from hallujudge.metrics.tri_he.evidence import TriHeEvidence

from .markup import Markup, joined
from .pieces import Mark, listing, marked
from .text import counted
from .views import View

__all__ = ["VIEWS"]


def _claims(evidence: Evidence, verdict: Verdict) -> Iterator[ClaimVerdict]:
    assert isinstance(evidence, TriHeEvidence)
    return (claim for claim in evidence.claims if claim.verdict is verdict)


def _claim_text(claim: ClaimVerdict) -> str:
    about = claim.part.value if claim.part else claim.reason
    return " · ".join(claim.triplet) + (f" ({about})" if about else "")


def _claim_marks(evidence: TriHeEvidence) -> Iterator[Mark]:
    for claim in evidence.claims:
        if claim.span and claim.verdict is not Verdict.UNSCORED:
            wrong = claim.verdict is Verdict.NOT_SUPPORTED
            verdict = "not supported" if wrong else "supported"
            yield Mark(*claim.span, wrong, f"{_claim_text(claim)}, {verdict} by the scene graph")


def _tri_he_body(item: Item, result: ItemResult) -> Markup:
    evidence = result.evidence
    assert isinstance(evidence, TriHeEvidence)
    shown = {verdict: list(map(_claim_text, _claims(evidence, verdict))) for verdict in Verdict}
    question: str = getattr(item, "question", "")
    response = getattr(item, "response", None)
    return joined(
        [
            *listing("Question", [question] if question else []),
            *([marked(response, list(_claim_marks(evidence)))] if response else []),
            *listing("Hallucinated", shown[Verdict.NOT_SUPPORTED], "wrong"),
            *listing("Supported", shown[Verdict.SUPPORTED]),
            *listing("Without a verdict", shown[Verdict.UNSCORED]),
        ]
    )


def _tri_he_weight(evidence: Evidence) -> int:
    return sum(1 for _ in _claims(evidence, Verdict.NOT_SUPPORTED))


def _tri_he_summary(evidence: Evidence) -> str:
    assert isinstance(evidence, TriHeEvidence)
    return f"{_tri_he_weight(evidence):,} of {counted(len(evidence.claims), 'claim')} hallucinated"


VIEWS: dict[type[object], View] = {
    TriHeEvidence: View(
        body=_tri_he_body,
        weight=_tri_he_weight,
        summary=_tri_he_summary,
        order="those with the most hallucinated claims first",
        legend=True,
    ),
}
"""View of each kind of evidence."""
