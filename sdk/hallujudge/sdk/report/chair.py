"""View of CHAIR items."""

from __future__ import annotations

from collections.abc import Sequence

from hallujudge.metrics import ChairEvidence, Item, ItemResult, MentionVerdict

from .item_views import Claim, ItemView, Listing, Mark, Passage, Shade, View
from .report_text import counted


def _pair(mention: MentionVerdict) -> str:
    return mention.word if mention.word == mention.object else f"{mention.word} → {mention.object}"


def _shade(mention: MentionVerdict) -> Shade:
    return Shade.WRONG if mention.hallucinated else Shade.RIGHT


def _claim(mention: MentionVerdict) -> Claim:
    verdict = "not among" if mention.hallucinated else "among"
    return Claim(
        text=_pair(mention),
        shade=_shade(mention),
        reasons=[("object", f"{mention.object}, {verdict} the image's reference objects")],
    )


def _show(item: Item, result: ItemResult) -> ItemView:
    evidence = result.evidence
    assert isinstance(evidence, ChairEvidence)
    mentions = evidence.mentions
    reference: Sequence[str] = getattr(item, "reference_objects", None) or ()
    wrong = [mention for mention in mentions if mention.hallucinated]
    # Given and extracted objects may have no place in the text.
    marks = [Mark(m.start, m.end, _shade(m), i) for i, m in enumerate(mentions) if m.end]
    return ItemView(
        summary=f"{len(wrong):,} of {counted(len(mentions), 'mention')} hallucinated",
        passages=[Passage(text=getattr(item, "response", None) or "", marks=marks)],
        claims=[_claim(mention) for mention in mentions],
        lists=[
            Listing(label="Hallucinated", entries=dict.fromkeys(map(_pair, wrong)), style="wrong"),
            Listing(label="Missed", entries=evidence.missed, style="missed"),
            Listing(label="Reference objects", entries=reference),
        ],
        wrong=len(wrong),
        total=len(mentions),
        terms={"hallucinated": [m.object for m in wrong], "missed": evidence.missed},
    )


VIEWS: dict[type[object], View] = {
    ChairEvidence: View(
        show=_show,
        terms={"hallucinated": "Most hallucinated objects", "missed": "Most missed objects"},
    ),
}
"""View of each kind of evidence."""
