"""View of Mementos items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hallujudge.metrics import Item, ItemResult
from hallujudge.metrics.mementos import KeywordEvidence, MementosEvidence

from .item_views import (
    Claim,
    Facet,
    ItemView,
    Listing,
    Mark,
    Passage,
    Shade,
    View,
    invalid_listing,
)
from .report_text import counted


def _named(predicted: str, reference: str) -> str:
    return predicted if predicted == reference else f"{predicted} → {reference}"


def _claims(kind: str, found: KeywordEvidence) -> Iterator[Claim]:
    """Yield one claim for each predicted keyword, in order."""
    names = dict(found.matched)
    wrong = set(found.hallucinated)
    near = {miss.predicted: miss for miss in found.near}
    unknown = set(found.unknown)
    for word in found.predicted:
        reasons = [("names", names.get(word, ""))]
        if word in wrong:
            reasons.append(("human description", "has no synonym of it"))
        if word in near:
            reasons.append(("near miss", f"{near[word].reference} ({near[word].why})"))
        if word in unknown:
            reasons.append(("synonym graph", "does not know the word"))
        yield Claim(
            text=_named(word, names.get(word, word)),
            shade=Shade.WRONG if word in wrong else Shade.RIGHT,
            reasons=reasons,
            kind=kind,
        )


def _marks(found: KeywordEvidence, first: int) -> Iterator[Mark]:
    wrong = set(found.hallucinated)
    spans = zip(found.predicted, found.predicted_spans, strict=False)
    for index, (word, (start, end)) in enumerate(spans, first):
        if end:
            yield Mark(start, end, Shade.WRONG if word in wrong else Shade.RIGHT, index)


def _reference_marks(found: KeywordEvidence) -> Iterator[Mark]:
    shades = dict.fromkeys((pair.reference for pair in found.matched), Shade.RIGHT)
    shades |= dict.fromkeys(found.missed, Shade.MISSED)
    for word, (start, end) in zip(found.reference, found.reference_spans, strict=False):
        if end and word in shades:
            yield Mark(start, end, shades[word])


def _passages(
    item: Item, objects: KeywordEvidence, behaviors: KeywordEvidence
) -> Iterator[Passage]:
    if response := getattr(item, "response", None):
        marks = [*_marks(objects, 0), *_marks(behaviors, len(objects.predicted))]
        yield Passage(text=response, label="Model's description", marks=marks)
    if reference := getattr(item, "reference", None):
        marks = [*_reference_marks(objects), *_reference_marks(behaviors)]
        yield Passage(text=reference, label="Human description", marks=marks)


def _lists(kinds: Mapping[str, KeywordEvidence]) -> Iterator[Listing]:
    """Yield hallucinated and missed keywords, and those that no synonym graph contains."""
    for kind, found in kinds.items():
        yield Listing(label=f"Hallucinated {kind}s", entries=found.hallucinated, style="wrong")
    for kind, found in kinds.items():
        yield Listing(label=f"Missed {kind}s", entries=found.missed, style="missed")
    for kind, found in kinds.items():
        yield Listing(label=f"{kind.capitalize()}s unknown to the graph", entries=found.unknown)


def _show(item: Item, result: ItemResult) -> ItemView:
    evidence = result.evidence
    assert isinstance(evidence, MementosEvidence)
    kinds = {"object": evidence.objects, "behaviour": evidence.behaviors}
    parts = [
        f"{len(found.hallucinated):,} of {counted(len(found.predicted), kind)}"
        for kind, found in kinds.items()
    ]
    claims = [claim for kind, found in kinds.items() for claim in _claims(kind, found)]
    words = {
        name: [word for found in kinds.values() for word in getattr(found, name)]
        for name in ("hallucinated", "missed", "unknown")
    }
    return ItemView(
        summary=f"{' and '.join(parts)} hallucinated",
        passages=list(_passages(item, evidence.objects, evidence.behaviors)),
        claims=claims,
        lists=[*_lists(kinds), invalid_listing(evidence.invalid, "keywords")],
        wrong=len(words["hallucinated"]),
        total=len(claims),
        facets={"domain": evidence.domain},
        terms=words,
    )


VIEWS: dict[type[object], View] = {
    MementosEvidence: View(
        show=_show,
        facets={"domain": Facet("Domain")},
        terms={
            "hallucinated": "Most hallucinated keywords",
            "missed": "Most missed keywords",
            "unknown": "Keywords unknown to the graph",
        },
    ),
}
"""View of each kind of evidence."""
