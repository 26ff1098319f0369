"""View of Mementos items."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hallujudge.metrics import Evidence, Item, ItemResult
from hallujudge.metrics.mementos.evidence import KeywordEvidence, MementosEvidence

from .markup import Markup, joined
from .pieces import Mark, listing, marked
from .text import counted
from .views import View

__all__ = ["VIEWS"]


def _keyword_marks(found: KeywordEvidence) -> Iterator[Mark]:
    """Return marks of the keywords in the response; keywords that match no reference are wrong."""
    named = dict(found.matched)
    wrong = set(found.hallucinated)
    for word, (start, end) in zip(found.predicted, found.predicted_spans, strict=False):
        if end:
            verdict = "not in the human description" if word in wrong else "right"
            told = f"{word} → {named[word]}" if word in named else word
            yield Mark(start, end, word in wrong, f"{told}, {verdict}")


def _without_overlaps(marks: Iterable[Mark]) -> list[Mark]:
    kept: list[Mark] = []
    for mark in sorted(marks):
        if not kept or mark[0] >= kept[-1][1]:
            kept.append(mark)
    return kept


def _mementos_body(item: Item, result: ItemResult) -> Markup:
    evidence = result.evidence
    assert isinstance(evidence, MementosEvidence)
    response: str = getattr(item, "response", None) or ""
    reference: str = getattr(item, "reference", None) or ""
    kinds = {"objects": evidence.objects, "behaviours": evidence.behaviors}
    marks = _without_overlaps(mark for found in kinds.values() for mark in _keyword_marks(found))
    listings: list[Markup] = []
    for name, found in kinds.items():
        listings += listing(f"Hallucinated {name}", found.hallucinated, "wrong")
        listings += listing(f"Missed {name}", found.missed)
        listings += listing(f"Right {name}", [_named(*pair) for pair in found.matched])
        near = [f"{miss.predicted} ≈ {miss.reference} ({miss.why})" for miss in found.near]
        listings += listing(f"Near misses, {name}", near)
        listings += listing(f"Unknown to the graph, {name}", found.unknown)
    return joined(
        [
            *([marked(response, marks)] if response else []),
            *listing("Human description", [reference] if reference else []),
            *listings,
        ]
    )


def _named(predicted: str, reference: str) -> str:
    return predicted if predicted == reference else f"{predicted} → {reference}"


def _mementos_weight(evidence: Evidence) -> int:
    assert isinstance(evidence, MementosEvidence)
    return len(evidence.objects.hallucinated) + len(evidence.behaviors.hallucinated)


def _mementos_summary(evidence: Evidence) -> str:
    assert isinstance(evidence, MementosEvidence)
    parts = [
        f"{len(found.hallucinated):,} of {counted(len(found.predicted), noun)}"
        for found, noun in ((evidence.objects, "object"), (evidence.behaviors, "behaviour"))
    ]
    return f"{' and '.join(parts)} hallucinated"


VIEWS: dict[type[object], View] = {
    MementosEvidence: View(
        body=_mementos_body,
        weight=_mementos_weight,
        summary=_mementos_summary,
        order="those with the most hallucinated keywords first",
        legend=True,
    ),
}
"""View of each kind of evidence."""
