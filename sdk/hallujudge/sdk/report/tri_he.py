"""View of Tri-HE items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hallujudge.metrics import Item, ItemResult
from hallujudge.metrics.framework.claims import ClaimVerdict, Part, Triplet, Verdict
from hallujudge.metrics.tri_he import TriHeEvidence

from .item_views import ItemView, Listing, View, facts, invalid_listing
from .report_text import counted
from .verdict_views import (
    claim_passages,
    claim_text,
    claim_view,
    judge_facts,
    margin_measures,
)

_SUBJECT, _RELATION, _OBJECT = range(3)


def _wrong_objects(claims: Sequence[ClaimVerdict]) -> Iterator[str]:
    places = {Part.SUBJECT: _SUBJECT, Part.OBJECT: _OBJECT}
    for claim in claims:
        if claim.part in places and len(claim.triplet) > _OBJECT:
            yield claim.triplet[places[claim.part]].strip().lower()


def _wrong_relations(claims: Sequence[ClaimVerdict]) -> Iterator[str]:
    for claim in claims:
        if claim.part is Part.RELATION and len(claim.triplet) > _OBJECT:
            yield claim.triplet[_RELATION].strip().lower()


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
        passages=list(claim_passages(item, claims)),
        claims=[claim_view(claim, places) for claim in claims],
        lists=[
            Listing(
                label="Hallucinated", entries=[claim_text(c.triplet) for c in wrong], style="wrong"
            ),
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
