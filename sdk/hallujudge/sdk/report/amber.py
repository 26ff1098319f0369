"""View of AMBER's descriptions."""

from __future__ import annotations

from hallujudge.metrics import Evidence, Item, ItemResult
from hallujudge.metrics.amber.evidence import AmberEvidence

from .markup import Markup, joined
from .pieces import listing, marked
from .text import counted
from .views import View

__all__ = ["VIEWS"]


def _body(item: Item, result: ItemResult) -> Markup:
    evidence = result.evidence
    assert isinstance(evidence, AmberEvidence)
    response = getattr(item, "response", None)
    wrong = dict.fromkeys(word.word for word in evidence.words if word.verdict == "hallucinated")
    return joined(
        [
            *([marked(response, ())] if response else []),
            *listing("Hallucinated", wrong, "wrong"),
            *listing("Hallucination targets said", evidence.targets_said, "wrong"),
            *listing("Covered", evidence.covered),
            *listing("Missed", evidence.missed),
        ]
    )


def _weight(evidence: Evidence) -> int:
    assert isinstance(evidence, AmberEvidence)
    return sum(word.verdict == "hallucinated" for word in evidence.words)


def _summary(evidence: Evidence) -> str:
    assert isinstance(evidence, AmberEvidence)
    return f"{_weight(evidence):,} of {counted(len(evidence.words), 'object word')} hallucinated"


VIEWS: dict[type[object], View] = {
    AmberEvidence: View(
        body=_body,
        weight=_weight,
        summary=_summary,
        order="those with the most hallucinated words first",
    ),
}
"""View of each kind of evidence."""
