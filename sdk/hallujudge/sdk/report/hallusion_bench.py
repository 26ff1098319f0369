"""View of HallusionBench items."""

from __future__ import annotations

from collections.abc import Iterator

from hallujudge.metrics import Item, ItemResult
from hallujudge.metrics.hallusion_bench import HallusionBenchEvidence

from .answers import declined_facts, token_probability
from .item_views import (
    ANSWER_WORDS,
    Claim,
    Facet,
    ItemView,
    Passage,
    View,
    answer_shade,
    item_facts,
    marked_passage,
)

_WORDS = ("wrong", "right", "unclear")
_FIGURES = ("no figure", "the original figure", "an edited figure")
# Shown in passages, in reasons or as facets.
_ELSEWHERE = ("question", "details", "label", "correctness", "visual_input")


def _passages(item: Item, evidence: HallusionBenchEvidence) -> Iterator[Passage]:
    if question := getattr(item, "question", ""):
        yield Passage(text=question, label="Question")
    if response := getattr(item, "response", None):
        yield marked_passage(response, "Response", answer_shade(evidence.correct))
    if details := getattr(item, "details", ""):
        yield Passage(text=details, label="Reference answer")


def _show(item: Item, result: ItemResult) -> ItemView:
    evidence = result.evidence
    assert isinstance(evidence, HallusionBenchEvidence)
    word = _WORDS[evidence.correctness]
    reasons = [
        ("correctness", word),
        ("parsed as", evidence.answer or ""),
        ("label", evidence.label),
        ("verdict of", evidence.how),
        ("margin", "" if evidence.margin is None else f"{evidence.margin:.4f}"),
        *token_probability("right", evidence.probability),
        ("given label", "" if evidence.given is None else _WORDS[evidence.given]),
        *declined_facts(evidence.judging),
    ]
    return ItemView(
        summary=word,
        passages=list(_passages(item, evidence)),
        claims=[
            Claim(
                text=f"answer: {evidence.answer or word}",
                shade=answer_shade(evidence.correct),
                reasons=reasons,
            )
        ],
        facts=item_facts(item, without=_ELSEWHERE),
        wrong=int(not evidence.correct),
        total=1,
        facets={
            "correctness": word,
            "category": getattr(item, "category", ""),
            "subcategory": getattr(item, "subcategory", ""),
            "figure": _FIGURES[getattr(item, "visual_input", 0)],
        },
        measures={} if evidence.margin is None else {"margin": evidence.margin},
    )


VIEWS: dict[type[object], View] = {
    HallusionBenchEvidence: View(
        show=_show,
        words=ANSWER_WORDS,
        facets={
            "correctness": Facet("Outcome", rates=False),
            "category": Facet("Category"),
            "subcategory": Facet("Subcategory"),
            "figure": Facet("Asked about"),
        },
    ),
}
"""View of each kind of evidence."""
