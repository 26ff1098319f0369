"""View of single answers, as in POPE and VidHal."""

from __future__ import annotations

from hallujudge.metrics import Evidence
from hallujudge.metrics.answers.evidence import AnswerEvidence

from .views import View, general_body

__all__ = ["VIEWS"]


def _answer_weight(evidence: Evidence) -> int:
    assert isinstance(evidence, AnswerEvidence)
    return int(not evidence.correct)


def _answer_summary(evidence: Evidence) -> str:
    assert isinstance(evidence, AnswerEvidence)
    verdict = "right" if evidence.correct else f"wrong: it is {evidence.label}"
    return f"{evidence.answer or 'unreadable'}, {verdict}"


VIEWS: dict[type[object], View] = {
    AnswerEvidence: View(body=general_body, weight=_answer_weight, summary=_answer_summary),
}
"""View of each kind of evidence."""
