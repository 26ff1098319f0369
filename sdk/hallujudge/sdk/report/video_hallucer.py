"""View of VideoHallucer items."""

from __future__ import annotations

from hallujudge.metrics import Evidence
from hallujudge.metrics.video_hallucer.evidence import VideoHallucerEvidence

from .views import View, general_body

__all__ = ["VIEWS"]


def _weight(evidence: Evidence) -> int:
    assert isinstance(evidence, VideoHallucerEvidence)
    return sum(not each.correct for each in (evidence.basic, evidence.hallucination))


def _summary(evidence: Evidence) -> str:
    assert isinstance(evidence, VideoHallucerEvidence)
    pairs = (("basic", evidence.basic), ("hallucination", evidence.hallucination))
    return ", ".join(f"{name} {'right' if each.correct else 'wrong'}" for name, each in pairs)


VIEWS: dict[type[object], View] = {
    VideoHallucerEvidence: View(body=general_body, weight=_weight, summary=_summary),
}
"""View of each kind of evidence."""
