"""View of seen claims: the picture beside the response, whose claims are marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hallujudge.metrics import Item, ItemResult
from hallujudge.metrics.framework.claims import ClaimVerdict, Verdict
from hallujudge.metrics.framework.results import UnscoredReason
from hallujudge.metrics.seen_claims import is_hallucinated
from hallujudge.metrics.seen_claims.items import SeenClaimsEvidence

from .item_views import ItemView, Listing, View, facts, invalid_listing
from .report_text import counted
from .verdict_views import (
    claim_passages,
    claim_text,
    claim_view,
    judge_facts,
    margin_measures,
)


def _wrong_words(claims: Sequence[ClaimVerdict]) -> Iterator[str]:
    for claim in claims:
        yield claim_text(claim.triplet).strip().lower()


def _show(item: Item, result: ItemResult) -> ItemView:
    evidence = result.evidence
    assert isinstance(evidence, SeenClaimsEvidence)
    claims = evidence.claims
    wrong = list(filter(is_hallucinated, claims))
    unseen = [c for c in claims if c.reason == UnscoredReason.CLAIM_NOT_VISIBLE]
    names = dict.fromkeys(picture.name for picture in evidence.pictures)
    return ItemView(
        summary=f"{len(wrong):,} of {counted(len(claims), 'claim')} not supported by the picture",
        passages=list(claim_passages(item, claims)),
        claims=[claim_view(claim, {}) for claim in claims],
        lists=[
            Listing(label="Hallucinated", entries=map(_text, wrong), style="wrong"),
            Listing(label="Not visible", entries=map(_text, unseen)),
            invalid_listing(evidence.invalid, "claims"),
        ],
        facts=[
            *facts({"picture": list(names), "extractor": evidence.extractor}),
            *judge_facts(evidence.judging),
        ],
        wrong=len(wrong),
        total=sum(claim.verdict is not Verdict.UNSCORED for claim in claims),
        measures=margin_measures(claims),
        terms={"hallucinated": list(_wrong_words(wrong))},
    )


def _text(claim: ClaimVerdict) -> str:
    return claim_text(claim.triplet)


VIEWS: dict[type[object], View] = {
    SeenClaimsEvidence: View(show=_show, terms={"hallucinated": "Most hallucinated claims"}),
}
"""View of each kind of evidence."""
