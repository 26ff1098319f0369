"""View of INFACT items."""

from __future__ import annotations

from hallujudge.metrics import Evidence
from hallujudge.metrics.infact.evidence import InfactEvidence

from .views import View, general_body

__all__ = ["VIEWS"]


def _infact_weight(evidence: Evidence) -> int:
    assert isinstance(evidence, InfactEvidence)
    return sum(not run.correct for run in evidence.runs)


VIEWS: dict[type[object], View] = {
    InfactEvidence: View(body=general_body, weight=_infact_weight),
}
"""View of each kind of evidence."""
