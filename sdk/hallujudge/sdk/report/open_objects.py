"""View of captions whose objects are compared with references."""

from __future__ import annotations

from collections.abc import Sequence

from hallujudge.metrics import Item, ItemResult
from hallujudge.metrics.open_objects import ComparedObject, OpenObjectsEvidence

from .item_views import Claim, ItemView, Listing, Mark, Passage, Shade, View
from .report_text import counted


def _shade(found: ComparedObject) -> Shade:
    return Shade.WRONG if found.hallucinated else Shade.RIGHT


def _claim(found: ComparedObject) -> Claim:
    reasons = [
        ("most similar", f"{found.reference or 'no reference object'}, {found.similarity:.2f}"),
        ("closeness of the sentence", f"{found.closeness:.2f}"),
        ("gain without a word", f"{found.gain:+.3f}"),
        ("doubt", f"{found.doubt:.2f}"),
    ]
    if found.uncounted:
        reasons.append(("number", "in fewer than half of the reference captions"))
    return Claim(text=found.object, shade=_shade(found), reasons=reasons)


def _show(item: Item, result: ItemResult) -> ItemView:
    evidence = result.evidence
    assert isinstance(evidence, OpenObjectsEvidence)
    objects = evidence.objects
    wrong = [found.object for found in objects if found.hallucinated]
    captions: Sequence[str] = getattr(item, "reference_captions", None) or ()
    given: Sequence[str] = getattr(item, "reference_objects", None) or ()
    marks = [Mark(o.start, o.end, _shade(o), index) for index, o in enumerate(objects)]
    return ItemView(
        summary=f"{len(wrong):,} of {counted(len(objects), 'object')} hallucinated",
        passages=[Passage(text=getattr(item, "response", None) or "", marks=marks)],
        claims=list(map(_claim, objects)),
        lists=[
            Listing(label="Hallucinated", entries=dict.fromkeys(wrong), style="wrong"),
            Listing(label="Missed", entries=evidence.missed, style="missed"),
            Listing(label="Reference captions", entries=captions),
            Listing(label="Reference objects", entries=given),
        ],
        wrong=len(wrong),
        total=len(objects),
        terms={"hallucinated": wrong, "missed": evidence.missed},
    )


VIEWS: dict[type[object], View] = {
    OpenObjectsEvidence: View(
        show=_show,
        terms={"hallucinated": "Most hallucinated objects", "missed": "Most missed objects"},
    ),
}
"""View of each kind of evidence."""
