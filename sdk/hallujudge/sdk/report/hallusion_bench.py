"""View of HallusionBench items."""

from __future__ import annotations

from hallujudge.metrics import Evidence
from hallujudge.metrics.hallusion_bench.evidence import HallusionBenchEvidence

from .views import View, general_body

__all__ = ["VIEWS"]

_WORDS = ("wrong", "right", "unclear")


def _weight(evidence: Evidence) -> int:
    assert isinstance(evidence, HallusionBenchEvidence)
    return int(not evidence.correct)


def _summary(evidence: Evidence) -> str:
    assert isinstance(evidence, HallusionBenchEvidence)
    return _WORDS[evidence.correctness]


VIEWS: dict[type[object], View] = {
    HallusionBenchEvidence: View(
        body=general_body, weight=_weight, summary=_summary, order="wrong answers first"
    ),
}
"""View of each kind of evidence."""
