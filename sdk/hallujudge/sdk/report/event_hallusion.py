"""View of EventHallusion items."""

from __future__ import annotations

from hallujudge.metrics import Evidence
from hallujudge.metrics.event_hallusion.evidence import EventHallusionEvidence

from .text import counted
from .views import View, general_body

__all__ = ["VIEWS"]


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
    EventHallusionEvidence: View(body=general_body, weight=_weight, summary=_summary),
}
"""View of each kind of evidence."""
