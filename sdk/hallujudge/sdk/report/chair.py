"""View of CHAIR items."""

from __future__ import annotations

from collections.abc import Sequence

from hallujudge.metrics import ChairEvidence, Evidence, Item, ItemResult, MentionVerdict

from .markup import Markup, joined
from .pieces import Mark, listing, marked
from .text import counted
from .views import View

__all__ = ["VIEWS"]


def _pair(mention: MentionVerdict) -> str:
    return mention.word if mention.word == mention.object else f"{mention.word} → {mention.object}"


def _mention_mark(mention: MentionVerdict) -> Mark:
    word, thing, start, end, wrong = mention
    verdict = "not among" if wrong else "among"
    return Mark(start, end, wrong, f"{word} → {thing}, {verdict} the image's reference objects")


def _chair_body(item: Item, result: ItemResult) -> Markup:
    evidence = result.evidence
    assert isinstance(evidence, ChairEvidence)
    response = getattr(item, "response", None) or ""
    reference: Sequence[str] = getattr(item, "reference_objects", None) or ()
    wrong = [_pair(mention) for mention in evidence.mentions if mention.hallucinated]
    return joined(
        [
            marked(response, [_mention_mark(mention) for mention in evidence.mentions]),
            # Tooltips are not visible on touch screens or paper, so the list repeats their text.
            *listing("Hallucinated", dict.fromkeys(wrong), "wrong"),
            *listing("Missed", evidence.missed),
            *listing("Reference", reference),
        ]
    )


def _chair_weight(evidence: Evidence) -> int:
    assert isinstance(evidence, ChairEvidence)
    return sum(mention.hallucinated for mention in evidence.mentions)


def _chair_summary(evidence: Evidence) -> str:
    assert isinstance(evidence, ChairEvidence)
    total = counted(len(evidence.mentions), "mention")
    return f"{_chair_weight(evidence):,} of {total} hallucinated"


VIEWS: dict[type[object], View] = {
    ChairEvidence: View(
        body=_chair_body,
        weight=_chair_weight,
        summary=_chair_summary,
        order="those with the most hallucinated mentions first",
        legend=True,
    ),
}
"""View of each kind of evidence."""
