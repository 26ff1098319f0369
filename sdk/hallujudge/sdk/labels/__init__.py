"""Human labels, plans of what to label next, and the verdicts that labels are compared with."""

from __future__ import annotations

from .human_labels import (
    FoundLabels,
    Label,
    MatchedLabels,
    find_labels,
    match_labels,
    matched_labels,
    read_labels,
)
from .label_plans import LabelPlan, plan_labels, read_plan

__all__ = [
    "FoundLabels",
    "Label",
    "LabelPlan",
    "MatchedLabels",
    "find_labels",
    "match_labels",
    "matched_labels",
    "plan_labels",
    "read_labels",
    "read_plan",
]
