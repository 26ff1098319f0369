"""Metrics: values in, scores out. No network, no files, no models.

Every metric has three parts: statistics of an item, a tally that adds them up, and scores that are
functions of the sums, each with an interval and a signature.
"""

from ._bootstrap import IntervalSettings
from .base import Column, Metric, ScoreDefinition
from .chair import ChairMetric
from .errors import MergeError, MetricError, OptionError, UnknownVariantError
from .items import ChairItem, Item
from .signature import Signature
from .tally import Tally
from .values import (
    Bound,
    ChairEvidence,
    Coverage,
    Evidence,
    ItemResult,
    JsonValue,
    MentionVerdict,
    Outcome,
    Report,
    Score,
)

__all__ = [
    "Bound",
    "ChairEvidence",
    "ChairItem",
    "ChairMetric",
    "Column",
    "Coverage",
    "Evidence",
    "IntervalSettings",
    "Item",
    "ItemResult",
    "JsonValue",
    "MentionVerdict",
    "MergeError",
    "Metric",
    "MetricError",
    "OptionError",
    "Outcome",
    "Report",
    "Score",
    "ScoreDefinition",
    "Signature",
    "Tally",
    "UnknownVariantError",
]
