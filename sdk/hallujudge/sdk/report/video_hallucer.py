"""View of VideoHallucer items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hallujudge.metrics import Item, ItemResult
from hallujudge.metrics.video_hallucer import VideoHallucerEvidence

from .answers import answer_claim
from .item_views import (
    ANSWER_WORDS,
    Facet,
    ItemView,
    Passage,
    Shade,
    View,
    item_facts,
    marked_passage,
)


def _passages(runs: Mapping[str, Any], shades: Mapping[str, Shade]) -> list[Passage]:
    passages: list[Passage] = []
    for index, (name, shade) in enumerate(shades.items()):
        run = runs.get(name)
        if question := getattr(run, "question", ""):
            passages.append(Passage(text=question, label=f"Question, {name}"))
        if response := getattr(run, "response", None):
            passages.append(marked_passage(response, f"Response, {name}", shade, index))
    return passages


def _show(item: Item, result: ItemResult) -> ItemView:
    evidence = result.evidence
    assert isinstance(evidence, VideoHallucerEvidence)
    pairs = {"basic": evidence.basic, "hallucination": evidence.hallucination}
    words = {name: "right" if each.correct else "wrong" for name, each in pairs.items()}
    claims = [
        answer_claim(each, f"{name}: {each.answer or 'unreadable'}") for name, each in pairs.items()
    ]
    shades = {name: claim.shade for name, claim in zip(pairs, claims, strict=True)}
    return ItemView(
        summary=", ".join(f"{name} {word}" for name, word in words.items()),
        passages=_passages(getattr(item, "runs", {}), shades),
        claims=claims,
        facts=item_facts(item, without=("runs",)),
        wrong=sum(not each.correct for each in pairs.values()),
        total=len(pairs),
        facets={
            "pair": f"basic {words['basic']}, hallucination {words['hallucination']}",
            "set": getattr(item, "set_name", ""),
        },
    )


VIEWS: dict[type[object], View] = {
    VideoHallucerEvidence: View(
        show=_show,
        words=ANSWER_WORDS,
        facets={"pair": Facet("Outcome of the pair", rates=False), "set": Facet("Set")},
    ),
}
"""View of each kind of evidence."""
