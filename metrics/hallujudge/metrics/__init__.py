"""Metrics: values in, scores out. No network, no files, no models.

Every metric has three parts: statistics of an item, a tally that adds them up, and scores that are
functions of the sums, each with an interval and a signature.

Names are looked up when they are first used, so that importing a small value costs no large module.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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

_HOMES = {
    "Bound": "values",
    "ChairEvidence": "values",
    "ChairItem": "items",
    "ChairMetric": "chair",
    "Column": "base",
    "Coverage": "values",
    "Evidence": "values",
    "IntervalSettings": "_bootstrap",
    "Item": "items",
    "ItemResult": "values",
    "JsonValue": "values",
    "MentionVerdict": "values",
    "MergeError": "errors",
    "Metric": "base",
    "MetricError": "errors",
    "OptionError": "errors",
    "Outcome": "values",
    "Report": "values",
    "Score": "values",
    "ScoreDefinition": "base",
    "Signature": "signature",
    "Tally": "tally",
    "UnknownVariantError": "errors",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
