"""View of VideoHallucer items."""

from __future__ import annotations

from hallujudge.metrics import Evidence, Item, ItemResult
from hallujudge.metrics.video_hallucer.evidence import VideoHallucerEvidence
from hallujudge.metrics.video_hallucer.items import BASIC, HALLUCINATION, VideoHallucerItem

from .answers import question_and_answer
from .markup import Markup, element, joined
from .views import View

__all__ = ["VIEWS"]


def _body(item: Item, result: ItemResult) -> Markup:
    evidence = result.evidence
    assert isinstance(evidence, VideoHallucerEvidence)
    assert isinstance(item, VideoHallucerItem)
    parts: list[Markup] = []
    # Most pairs are about one video, which the heading names.
    several = len({run.video for run in item.runs.values()}) > 1
    for name, verdict in ((BASIC, evidence.basic), (HALLUCINATION, evidence.hallucination)):
        run = item.runs[name]
        parts.append(element("p", f"{name}, {run.video}" if several else name, _class="muted"))
        # An answer that could not be parsed does not count.
        correct = verdict.correct if verdict.answer is not None or verdict.correct else None
        parts += question_and_answer(run.question, run.response, run.label, correct=correct)
    return joined(parts)


def _weight(evidence: Evidence) -> int:
    assert isinstance(evidence, VideoHallucerEvidence)
    return sum(not each.correct for each in (evidence.basic, evidence.hallucination))


def _summary(evidence: Evidence) -> str:
    assert isinstance(evidence, VideoHallucerEvidence)
    pairs = (("basic", evidence.basic), ("hallucination", evidence.hallucination))
    return ", ".join(f"{name} {'right' if each.correct else 'wrong'}" for name, each in pairs)


VIEWS: dict[type[object], View] = {
    VideoHallucerEvidence: View(body=_body, weight=_weight, summary=_summary),
}
"""View of each kind of evidence."""
