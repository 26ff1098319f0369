"""View of AMBER's descriptions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from hallujudge.metrics import Evidence, Item, ItemResult
from hallujudge.metrics.amber.evidence import AmberEvidence

from .markup import Markup, joined
from .pieces import Mark, listing, marked
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
            *([marked(response, list(_marks(response, wrong)))] if response else []),
            *listing("Hallucinated", wrong, "wrong"),
            *listing("Hallucination targets said", evidence.targets_said, "wrong"),
            *listing("Covered", evidence.covered),
            *listing("Missed", evidence.missed),
        ]
    )


def _marks(response: str, wrong: Iterable[str]) -> Iterator[Mark]:
    """Return marks of hallucinated words; a plural of another form is in the list alone."""
    words = "|".join(sorted(map(re.escape, wrong), key=len, reverse=True))
    for found in (
        re.finditer(rf"\b(?:{words})(?:s|es)?\b", response, re.IGNORECASE) if words else ()
    ):
        yield Mark(*found.span(), wrong=True, title="not in the image")


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
        legend=True,
    ),
}
"""View of each kind of evidence."""
