"""Views of claims with verdicts, as Tri-HE, seen claims and ARGUS have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hallujudge.metrics import Item
from hallujudge.metrics.argus import ENTAILED, ArgusEvidence, ArgusItem, LineCost
from hallujudge.metrics.argus.caption_lines import lines_of
from hallujudge.metrics.framework.claims import (
    LANGUAGE_MODELS,
    ClaimVerdict,
    Modality,
    Part,
    Triplet,
    Verdict,
    is_hallucinated,
    support_probability,
)
from hallujudge.metrics.framework.results import UnscoredReason
from hallujudge.metrics.seen_claims import SeenClaimsEvidence
from hallujudge.metrics.tri_he import TriHeEvidence

from .answer_views import declined_facts, percent_of
from .item_views import (
    Claim,
    Facet,
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
# A claim may be compared with every triplet of a scene graph, which the page shows beside it.
_REFERENCES = 12


def claim_text(parts: Sequence[str]) -> str:
    """Return a claim in words."""
    return " · ".join(parts)


def _text_of(claim: ClaimVerdict) -> str:
    return claim_text(claim.triplet)


def claim_view(claim: ClaimVerdict, places: Mapping[Triplet, int]) -> Claim:
    """Return a claim with its verdict and what explains it.

    Args:
        claim: The claim.
        places: Reference triplet -> its place in the shown scene graph; empty without one.
    """
    return Claim(
        text=_text_of(claim),
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


_SUBJECT, _RELATION, _OBJECT = range(3)


def _wrong_objects(claims: Sequence[ClaimVerdict]) -> Iterator[str]:
    places = {Part.SUBJECT: _SUBJECT, Part.OBJECT: _OBJECT}
    for claim in claims:
        # A sentence has no parts.
        if claim.part in places and len(claim.triplet) > _OBJECT:
            # Models write one object in several ways, and charts count names.
            yield claim.triplet[places[claim.part]].strip().lower()


def _wrong_relations(claims: Sequence[ClaimVerdict]) -> Iterator[str]:
    for claim in claims:
        if claim.part is Part.RELATION and len(claim.triplet) > _OBJECT:
            yield claim.triplet[_RELATION].strip().lower()


def _show_tri_he(item: Item, evidence: TriHeEvidence) -> ItemView:
    claims = evidence.claims
    graph: Sequence[Triplet] = getattr(item, "reference_triplets", None) or evidence.scene_graph
    places = {triplet: index for index, triplet in enumerate(graph)}
    wrong = [claim for claim in claims if claim.verdict is Verdict.NOT_SUPPORTED]
    scored = sum(claim.verdict is not Verdict.UNSCORED for claim in claims)
    human = {"human scores": list(evidence.human_scores)} if evidence.human_scores else {}
    return ItemView(
        summary=f"{len(wrong):,} of {counted(len(claims), 'claim')} hallucinated",
        passages=list(claim_passages(item, claims)),
        claims=[claim_view(claim, places) for claim in claims],
        lists=[
            Listing(label="Hallucinated", entries=map(_text_of, wrong), style="wrong"),
            invalid_listing(evidence.invalid, "claims"),
        ],
        facts=[
            *facts({"extractor": evidence.extractor, **human}),
            *judge_facts(evidence.judging),
        ],
        graph=[list(triplet) for triplet in graph],
        wrong=len(wrong),
        total=scored,
        measures=margin_measures(claims),
        terms={
            "hallucinated": list(_wrong_objects(wrong)),
            "relations": list(_wrong_relations(wrong)),
        },
    )


def _show_seen_claims(item: Item, evidence: SeenClaimsEvidence) -> ItemView:
    claims = evidence.claims
    wrong = list(filter(is_hallucinated, claims))
    unseen = [c for c in claims if c.reason == UnscoredReason.CLAIM_NOT_VISIBLE]
    names = dict.fromkeys(picture.name for picture in evidence.pictures)
    return ItemView(
        summary=f"{len(wrong):,} of {counted(len(claims), 'claim')} not supported by the picture",
        passages=list(claim_passages(item, claims)),
        claims=[claim_view(claim, {}) for claim in claims],
        lists=[
            Listing(label="Hallucinated", entries=map(_text_of, wrong), style="wrong"),
            Listing(label="Not visible", entries=map(_text_of, unseen)),
            invalid_listing(evidence.invalid, "claims"),
        ],
        facts=[
            *facts({"picture": list(names), "extractor": evidence.extractor}),
            *judge_facts(evidence.judging),
        ],
        wrong=len(wrong),
        total=sum(claim.verdict is not Verdict.UNSCORED for claim in claims),
        measures=margin_measures(claims),
        terms={"hallucinated": [_text_of(claim).strip().lower() for claim in wrong]},
    )


def _line_shade(line: LineCost) -> Shade:
    return Shade.WRONG if line.cost or line.penalty else Shade.RIGHT


def _line_claim(line: LineCost, sources: list[str]) -> Claim:
    placed = 0 <= line.place < len(sources) and line.verdict == ENTAILED
    return Claim(
        text=line.text,
        shade=_line_shade(line),
        reasons=[
            ("verdict", line.verdict),
            ("kind", line.kind),
            ("evidence", line.evidence),
            ("placed at", f"{line.place + 1}: {sources[line.place]}" if placed else ""),
            ("cost", f"{line.cost:g}"),
            ("penalty for order", f"{line.penalty:.1f}" if line.penalty else ""),
        ],
    )


def _line_marks(text: str, lines: tuple[LineCost, ...]) -> Iterator[Mark]:
    """Yield the place of each line in its caption; lines that were joined or changed have none."""
    start = 0
    for index, line in enumerate(lines):
        # From the end of the line before: equal lines have places of their own.
        at = text.find(line.text, start)
        if at >= 0:
            start = at + len(line.text)
            yield Mark(at, start, _line_shade(line), index)


def _show_argus(item: Item, evidence: ArgusEvidence) -> ItemView:
    target = getattr(item, "response", None) or ""
    source, mode = (item.source or "", item.mode) if isinstance(item, ArgusItem) else ("", "")
    lines, sources = evidence.lines, lines_of(source)
    wrong = sum(line.cost > 0 for line in lines)
    later = sum(line.penalty > 0 for line in lines)
    return ItemView(
        summary=f"{wrong} of {counted(len(lines), 'line')} unsupported or misplaced, "
        f"{later} out of order",
        passages=[
            Passage(text=target, label="Target caption", marks=list(_line_marks(target, lines))),
            Passage(text=source, label="Source caption"),
        ],
        claims=[_line_claim(line, sources) for line in lines],
        facts=[
            ("cost", f"{evidence.cost:.4g} of {evidence.max_cost:.4g}"),
            ("entailed actions", str(evidence.actions)),
            *declined_facts(evidence.judging),
        ],
        wrong=wrong,
        total=len(lines),
        facets={"mode": mode} if mode else {},
        measures={"cost": evidence.cost},
    )


VIEWS: dict[type[object], View] = {
    TriHeEvidence: View(
        show=_show_tri_he,
        terms={
            "hallucinated": "Most hallucinated objects",
            "relations": "Most hallucinated relations",
        },
    ),
    SeenClaimsEvidence: View(
        show=_show_seen_claims, terms={"hallucinated": "Most hallucinated claims"}
    ),
    ArgusEvidence: View(show=_show_argus, facets={"mode": Facet("Examined for")}),
}
"""View of each kind of evidence."""
