"""View of VidHal's orderings; a single choice is shown as any answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hallujudge.metrics import Item, ItemResult
from hallujudge.metrics.vidhal import OrderEvidence

from .item_views import (
    ANSWER_WORDS,
    Claim,
    Facet,
    ItemView,
    Shade,
    View,
    answer_shade,
    response_passage,
)


def _claims(evidence: OrderEvidence, captions: Sequence[str]) -> Iterator[Claim]:
    """Yield one claim for each place of the order."""
    ranks = zip(evidence.order, evidence.ranks, strict=False)
    for place, (letter, rank) in enumerate(ranks, 1):
        caption = captions[rank - 1] if 0 < rank <= len(captions) else "never shown"
        yield Claim(
            text=f"{place}. {letter}: {caption}",
            shade=answer_shade(rank == place),
            reasons=[("rank of the caption", str(rank or "none")), ("given place", str(place))],
        )


def _right_order(item: Item) -> str:
    display: Mapping[str, int] = getattr(item, "display", {})
    return ", ".join(sorted(display, key=display.__getitem__))


def _show(item: Item, result: ItemResult) -> ItemView:
    evidence = result.evidence
    assert isinstance(evidence, OrderEvidence)
    captions: Sequence[str] = getattr(item, "captions", ())
    claims = list(_claims(evidence, captions))
    given = ", ".join(evidence.order)
    by_rank = ", ".join(map(str, evidence.ranks))
    return ItemView(
        summary=f"{given or 'no order'}; right is {_right_order(item)}",
        passages=response_passage(item),
        claims=claims,
        facts=[("problem", evidence.problem), ("order by rank", by_rank)],
        wrong=sum(claim.shade is Shade.WRONG for claim in claims) + bool(evidence.problem),
        total=len(claims) + bool(evidence.problem),
        facets={
            "order": evidence.problem or by_rank,
            "first": evidence.order[0] if evidence.order else "none",
        },
    )


VIEWS: dict[type[object], View] = {
    OrderEvidence: View(
        show=_show,
        words=ANSWER_WORDS,
        facets={
            "order": Facet("Order of the captions by rank", rates=False),
            "first": Facet("Letter named first", rates=False),
        },
    ),
}
"""View of each kind of evidence."""
