"""View of Tri-HE items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hallujudge.metrics import Item, ItemResult
from hallujudge.metrics.framework.claims import (
    LANGUAGE_MODELS,
    ClaimVerdict,
    Modality,
    Part,
    Triplet,
    Verdict,
    support_probability,
)
from hallujudge.metrics.tri_he import TriHeEvidence

from .answers import percent_of
from .item_views import (
    Claim,
    ItemView,
    Listing,
    Mark,
    Passage,
    Shade,
    View,
    facts,
    invalid_listing,
)
from .report_text import counted

_SHADES = {
    Verdict.SUPPORTED: Shade.RIGHT,
    Verdict.NOT_SUPPORTED: Shade.WRONG,
    Verdict.UNSCORED: Shade.UNSCORED,
}
_REFERENCES = 12
_SUBJECT, _RELATION, _OBJECT = range(3)


def _text(parts: Sequence[str]) -> str:
    return " · ".join(parts)


def _reasons(claim: ClaimVerdict) -> Iterator[tuple[str, str]]:
    if claim.part:
        yield "wrong part", claim.part.value
    if claim.modality not in (None, Modality.STATED):
        yield "modality", claim.modality.value
    if claim.reason:
        yield "no verdict", f"{claim.reason}: {claim.detail}"
    shown = [_text(triplet) for triplet in claim.references[:_REFERENCES]]
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


def _judges(judging: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield the judges in the order of their calls, with what each declined."""
    for number, entry in enumerate(judging, 1):
        parts = [counted(int(entry.get("answered", 0)), "verdict")]
        for reason, of in dict(entry.get("declined") or {}).items():
            claims = counted(int(of.get("claims", 0)), "claim")
            parts.append(f"none on {claims}: {reason}, {of.get('detail', '')}")
        yield f"judge {number}", f"{entry.get('judge', '')}: {'; '.join(parts)}"


def _claim(claim: ClaimVerdict, places: Mapping[Triplet, int]) -> Claim:
    return Claim(
        text=_text(claim.triplet),
        shade=_SHADES[claim.verdict],
        reasons=list(_reasons(claim)),
        matched=sorted({places[t] for t in claim.references if t in places}),
    )


def _wrong_objects(claims: Sequence[ClaimVerdict]) -> Iterator[str]:
    places = {Part.SUBJECT: _SUBJECT, Part.OBJECT: _OBJECT}
    for claim in claims:
        if claim.part in places and len(claim.triplet) > _OBJECT:
            yield claim.triplet[places[claim.part]].strip().lower()


def _wrong_relations(claims: Sequence[ClaimVerdict]) -> Iterator[str]:
    for claim in claims:
        if claim.part is Part.RELATION and len(claim.triplet) > _OBJECT:
            yield claim.triplet[_RELATION].strip().lower()


def _passages(item: Item, claims: Sequence[ClaimVerdict]) -> Iterator[Passage]:
    if question := getattr(item, "question", ""):
        yield Passage(text=question, label="Question")
    if response := getattr(item, "response", None):
        marks = [
            Mark(*claim.span, _SHADES[claim.verdict], index)
            for index, claim in enumerate(claims)
            if claim.span
        ]
        yield Passage(text=response, marks=marks, label="Response" if question else "")


def _margins(claims: Sequence[ClaimVerdict]) -> dict[str, float]:
    known = [abs(claim.margin) for claim in claims if claim.margin is not None]
    return {"margin": min(known)} if known else {}


def _show(item: Item, result: ItemResult) -> ItemView:
    evidence = result.evidence
    assert isinstance(evidence, TriHeEvidence)
    claims = evidence.claims
    graph: Sequence[Triplet] = getattr(item, "reference_triplets", None) or evidence.scene_graph
    places = {triplet: index for index, triplet in enumerate(graph)}
    wrong = [claim for claim in claims if claim.verdict is Verdict.NOT_SUPPORTED]
    scored = sum(claim.verdict is not Verdict.UNSCORED for claim in claims)
    human = {"human scores": list(evidence.human_scores)} if evidence.human_scores else {}
    return ItemView(
        summary=f"{len(wrong):,} of {counted(len(claims), 'claim')} hallucinated",
        passages=list(_passages(item, claims)),
        claims=[_claim(claim, places) for claim in claims],
        lists=[
            Listing(label="Hallucinated", entries=[_text(c.triplet) for c in wrong], style="wrong"),
            invalid_listing(evidence.invalid, "claims"),
        ],
        facts=[
            *facts({"extractor": evidence.extractor, **human}),
            *_judges(evidence.judging),
        ],
        graph=[list(triplet) for triplet in graph],
        wrong=len(wrong),
        total=scored,
        measures=_margins(claims),
        terms={
            "hallucinated": list(_wrong_objects(wrong)),
            "relations": list(_wrong_relations(wrong)),
        },
    )


VIEWS: dict[type[object], View] = {
    TriHeEvidence: View(
        show=_show,
        terms={
            "hallucinated": "Most hallucinated objects",
            "relations": "Most hallucinated relations",
        },
    ),
}
"""View of each kind of evidence."""
