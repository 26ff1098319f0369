"""View of EventHallusion items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hallujudge.metrics import Item, ItemResult
from hallujudge.metrics.event_hallusion import EventHallusionEvidence, EventVerdict

from .answers import declined_facts, token_probability
from .item_views import (
    ANSWER_WORDS,
    Claim,
    Facet,
    ItemView,
    Passage,
    Shade,
    View,
    answer_shade,
    item_facts,
    marked_passage,
)
from .report_text import counted


def _claim(verdict: EventVerdict) -> Claim:
    answer = verdict.answer or "unreadable"
    return Claim(
        text=verdict.question or f"answer: {answer}",
        shade=answer_shade(verdict.correct),
        reasons=[("parsed as", answer), ("label", verdict.label)],
    )


def _claims(evidence: EventHallusionEvidence) -> Iterator[Claim]:
    yield from map(_claim, evidence.answers)
    if evidence.description_correct is not None:
        reasons = [
            ("judgement", evidence.judgement or "unreadable"),
            ("given judgement", evidence.given or ""),
            ("margin", "" if evidence.margin is None else f"{evidence.margin:.4f}"),
            *token_probability("right", evidence.probability),
            *declined_facts(evidence.judging),
        ]
        yield Claim(
            text="description", shade=answer_shade(evidence.description_correct), reasons=reasons
        )


def _passages(item: Item, evidence: EventHallusionEvidence) -> Iterator[Passage]:
    questions: Sequence[Any] = getattr(item, "questions", ())
    for index, (asked, verdict) in enumerate(zip(questions, evidence.answers, strict=False)):
        if asked.response:
            shade = answer_shade(verdict.correct)
            yield marked_passage(asked.response, asked.question, shade, index)
    if response := getattr(item, "response", None):
        yield Passage(text=response, label="Description")
    if judgement := getattr(item, "judgement", None):
        yield Passage(text=judgement, label="Given judgement")


def _show(item: Item, result: ItemResult) -> ItemView:
    evidence = result.evidence
    assert isinstance(evidence, EventHallusionEvidence)
    claims = list(_claims(evidence))
    right = sum(verdict.correct is True for verdict in evidence.answers)
    summary = f"{right} of {counted(len(evidence.answers), 'answer')} right"
    if evidence.description_correct is not None:
        summary += f", description {'right' if evidence.description_correct else 'wrong'}"
    return ItemView(
        summary=summary,
        passages=list(_passages(item, evidence)),
        claims=claims,
        facts=item_facts(item, without=("questions", "judgement")),
        wrong=sum(claim.shade is Shade.WRONG for claim in claims),
        total=sum(claim.shade is not Shade.UNSCORED for claim in claims),
        facets={
            "split": getattr(item, "split", ""),
            "description": answer_shade(evidence.description_correct).name.lower(),
        },
    )


VIEWS: dict[type[object], View] = {
    EventHallusionEvidence: View(
        show=_show,
        words=ANSWER_WORDS,
        facets={
            "split": Facet("Split"),
            "description": Facet("Outcome of the description", rates=False),
        },
    ),
}
"""View of each kind of evidence."""
