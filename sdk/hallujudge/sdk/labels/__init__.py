"""Human labels: values, files, what to label next."""

from __future__ import annotations

from .matching import MatchedLabels, match_labels, matched_labels
from .planning import LabelPlan, plan_labels, read_plan
from .readers import FoundLabels, find_labels, read_labels
from .values import Label

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
