"""What families with claims share on the HTML page: claims, marked responses, judges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hallujudge.metrics import Item
from hallujudge.metrics.framework.claims import (
    LANGUAGE_MODELS,
    ClaimVerdict,
    Modality,
    Triplet,
    Verdict,
    support_probability,
)

from .answers import percent_of
from .item_views import Claim, Mark, Passage, Shade
from .report_text import counted

_SHADES = {
    Verdict.SUPPORTED: Shade.RIGHT,
    Verdict.NOT_SUPPORTED: Shade.WRONG,
    Verdict.UNSCORED: Shade.UNSCORED,
}
_REFERENCES = 12


def claim_text(parts: Sequence[str]) -> str:
    """Return a claim in words."""
    return " · ".join(parts)


def claim_view(claim: ClaimVerdict, places: Mapping[Triplet, int]) -> Claim:
    """Return a claim with its verdict and what explains it.

    Args:
        claim: The claim.
        places: Reference triplet -> its place in the shown scene graph; empty without one.
    """
    return Claim(
        text=claim_text(claim.triplet),
        shade=_SHADES[claim.verdict],
        reasons=list(_reasons(claim)),
        matched=sorted({places[t] for t in claim.references if t in places}),
        kind=", ".join(filter(None, (claim.kind, claim.moment))),
    )


def _reasons(claim: ClaimVerdict) -> Iterator[tuple[str, str]]:
    if claim.part:
        yield "wrong part", claim.part.value
    if claim.modality not in (None, Modality.STATED):
        yield "modality", claim.modality.value
    if claim.reason:
        yield "no verdict", f"{claim.reason}: {claim.detail}"
    shown = [claim_text(triplet) for triplet in claim.references[:_REFERENCES]]
    if more := len(claim.references) - _REFERENCES:
        shown += [f"and {more:,} more"] if more > 0 else []
    yield "compared with", "; ".join(shown)
    yield from _scores(claim)
    yield "judge", claim.judge


def _scores(claim: ClaimVerdict) -> Iterator[tuple[str, str]]:
    """Yield a matcher's similarity or another judge's probability, and the margin."""
    if (share := support_probability(claim)) is not None:
        name = "token probability" if claim.judge in LANGUAGE_MODELS else "probability"
        yield name, f"supported: {percent_of(share)}"
    elif claim.score is not None:
        yield "similarity", f"{claim.score:.4f}"
    if claim.margin is not None:
        yield "margin", f"{claim.margin:.4f}"


def judge_facts(judging: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield the judges in the order of their calls, with what each declined."""
    for number, entry in enumerate(judging, 1):
        parts = [counted(int(entry.get("answered", 0)), "verdict")]
        for reason, of in dict(entry.get("declined") or {}).items():
            claims = counted(int(of.get("claims", 0)), "claim")
            parts.append(f"none on {claims}: {reason}, {of.get('detail', '')}")
        yield f"judge {number}", f"{entry.get('judge', '')}: {'; '.join(parts)}"


def claim_passages(item: Item, claims: Sequence[ClaimVerdict]) -> Iterator[Passage]:
    """Yield the question, and the response with its claims marked."""
    if question := getattr(item, "question", ""):
        yield Passage(text=question, label="Question")
    if response := getattr(item, "response", None):
        marks = [
            Mark(*claim.span, _SHADES[claim.verdict], index)
            for index, claim in enumerate(claims)
            if claim.span
        ]
        yield Passage(text=response, marks=marks, label="Response" if question else "")


def margin_measures(claims: Sequence[ClaimVerdict]) -> dict[str, float]:
    """Return the smallest margin of the claims' verdicts, if any is known."""
    known = [abs(claim.margin) for claim in claims if claim.margin is not None]
    return {"margin": min(known)} if known else {}
