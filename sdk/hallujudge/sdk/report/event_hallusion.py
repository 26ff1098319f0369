"""View of EventHallusion items."""

from __future__ import annotations

from hallujudge.metrics import Evidence, Item, ItemResult
from hallujudge.metrics.event_hallusion.evidence import EventHallusionEvidence
from hallujudge.metrics.event_hallusion.items import EventHallusionItem

from .answers import question_and_answer, without_verdict
from .markup import Markup, joined
from .pieces import listing, marked
from .text import counted
from .views import View

__all__ = ["VIEWS"]


def _body(item: Item, result: ItemResult) -> Markup:
    evidence = result.evidence
    assert isinstance(evidence, EventHallusionEvidence)
    assert isinstance(item, EventHallusionItem)
    parts: list[Markup] = []
    for asked, verdict in zip(item.questions, evidence.answers, strict=True):
        parts += question_and_answer(
            verdict.question, asked.response, verdict.label, correct=verdict.correct
        )
    if item.response is not None:
        wrong = "wrong" if evidence.description_correct is False else ""
        parts += listing("Event", [item.event] if item.event else [])
        parts += listing("Description", [_VERDICTS[evidence.description_correct]], wrong)
        parts.append(marked(item.response, ()))
        parts += listing("Held judgement", [item.judgement] if item.judgement else [])
        parts += without_verdict(evidence.judging)
    return joined(parts)


_VERDICTS = {True: "right", False: "wrong", None: "does not count"}


def _weight(evidence: Evidence) -> int:
    assert isinstance(evidence, EventHallusionEvidence)
    wrong = [verdict.correct is False for verdict in evidence.answers]
    return sum(wrong) + (evidence.description_correct is False)


def _summary(evidence: Evidence) -> str:
    assert isinstance(evidence, EventHallusionEvidence)
    right = sum(verdict.correct is True for verdict in evidence.answers)
    answers = f"{right} of {counted(len(evidence.answers), 'answer')} right"
    if evidence.description_correct is None:
        return answers
    return f"{answers}, description {'right' if evidence.description_correct else 'wrong'}"


VIEWS: dict[type[object], View] = {
    EventHallusionEvidence: View(body=_body, weight=_weight, summary=_summary),
}
"""View of each kind of evidence."""
