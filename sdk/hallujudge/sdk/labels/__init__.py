"""Human labels: values, files, what to label next."""

from __future__ import annotations

from .matching import MatchedLabels, match_labels
from .planning import LabelPlan, plan_labels, read_plan
from .readers import read_labels
from .values import Label

__all__ = [
    "Label",
    "LabelPlan",
    "MatchedLabels",
    "match_labels",
    "plan_labels",
    "read_labels",
    "read_plan",
]
