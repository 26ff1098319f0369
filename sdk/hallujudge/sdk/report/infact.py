"""View of INFACT items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hallujudge.metrics import Item, ItemResult
from hallujudge.metrics.infact import InfactEvidence, RunVerdict

from .item_views import (
    ANSWER_WORDS,
    Claim,
    Facet,
    ItemView,
    Listing,
    Passage,
    View,
    answer_shade,
    item_facts,
    marked_passage,
)


def _claim(run: RunVerdict, label: str) -> Claim:
    answer = run.answer or "unreadable"
    reasons = [("parsed as", answer), ("label", label), ("parser", run.how)]
    return Claim(text=f"{run.operator}: {answer}", shade=answer_shade(run.correct), reasons=reasons)


def _right_answer(item: Item, evidence: InfactEvidence) -> str:
    """Return the label, with its option's text where that is known."""
    options: Mapping[str, str] = getattr(item, "options", {})
    text = options.get(evidence.label, "")
    return f"{evidence.label}: {text}" if text else evidence.label


def _passages(item: Item, evidence: InfactEvidence) -> Iterator[Passage]:
    runs: Mapping[str, Any] = getattr(item, "runs", {})
    for index, run in enumerate(evidence.runs):
        response = getattr(runs.get(run.operator), "response", None)
        if response:
            yield marked_passage(response, run.operator, answer_shade(run.correct), index)


def _show(item: Item, result: ItemResult) -> ItemView:
    evidence = result.evidence
    assert isinstance(evidence, InfactEvidence)
    wrong = [run.operator for run in evidence.runs if run.correct is False]
    base = next((run for run in evidence.runs if run.operator == "base"), None)
    return ItemView(
        summary=f"wrong: {', '.join(wrong)}" if wrong else "right in every mode",
        passages=list(_passages(item, evidence)),
        lists=[Listing(label="Right answer", entries=[_right_answer(item, evidence)])],
        claims=[_claim(run, evidence.label) for run in evidence.runs],
        facts=item_facts(item, without=("runs", "label")),
        wrong=len(wrong),
        total=sum(run.correct is not None for run in evidence.runs),
        facets={
            "dimension": getattr(item, "dimension", ""),
            "category": getattr(item, "category", ""),
            "base": "no base run" if base is None else answer_shade(base.correct).name.lower(),
        },
        terms={"hallucinated": wrong},
    )


VIEWS: dict[type[object], View] = {
    InfactEvidence: View(
        show=_show,
        words=ANSWER_WORDS,
        facets={
            "dimension": Facet("Dimension"),
            "category": Facet("Category"),
            "base": Facet("Outcome of the base run", rates=False),
        },
        terms={"hallucinated": "Modes answered wrongly"},
    ),
}
"""View of each kind of evidence."""
