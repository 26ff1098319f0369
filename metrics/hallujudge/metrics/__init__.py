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
    from .evidence_qa import AnswerEvidence, InfactEvidence, OrderEvidence, RunVerdict
    from .evidence_tri_he import ClaimVerdict, Part, TriHeEvidence, Verdict
    from .infact import InfactMetric
    from .items import ChairItem, InfactItem, InfactRun, Item, PopeItem, TriHeItem, VidhalItem
    from .pope import PopeMetric
    from .signature import Signature
    from .tally import Tally
    from .tri_he import TriHeMetric
    from .triplets import Triplet
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
    from .vidhal import VidhalMcqaMetric, VidhalOrderingMetric

__all__ = [
    "AnswerEvidence",
    "Bound",
    "ChairEvidence",
    "ChairItem",
    "ChairMetric",
    "ClaimVerdict",
    "Column",
    "Coverage",
    "Evidence",
    "InfactEvidence",
    "InfactItem",
    "InfactMetric",
    "InfactRun",
    "IntervalSettings",
    "Item",
    "ItemResult",
    "JsonValue",
    "MentionVerdict",
    "MergeError",
    "Metric",
    "MetricError",
    "OptionError",
    "OrderEvidence",
    "Outcome",
    "Part",
    "PopeItem",
    "PopeMetric",
    "Report",
    "RunVerdict",
    "Score",
    "ScoreDefinition",
    "Signature",
    "Tally",
    "TriHeEvidence",
    "TriHeItem",
    "TriHeMetric",
    "Triplet",
    "UnknownVariantError",
    "Verdict",
    "VidhalItem",
    "VidhalMcqaMetric",
    "VidhalOrderingMetric",
]

_HOMES = {
    "AnswerEvidence": "evidence_qa",
    "Bound": "values",
    "ChairEvidence": "values",
    "ChairItem": "items",
    "ChairMetric": "chair",
    "ClaimVerdict": "evidence_tri_he",
    "Column": "base",
    "Coverage": "values",
    "Evidence": "values",
    "InfactEvidence": "evidence_qa",
    "InfactItem": "items",
    "InfactMetric": "infact",
    "InfactRun": "items",
    "IntervalSettings": "_bootstrap",
    "Item": "items",
    "ItemResult": "values",
    "JsonValue": "values",
    "MentionVerdict": "values",
    "MergeError": "errors",
    "Metric": "base",
    "MetricError": "errors",
    "OptionError": "errors",
    "OrderEvidence": "evidence_qa",
    "Outcome": "values",
    "Part": "evidence_tri_he",
    "PopeItem": "items",
    "PopeMetric": "pope",
    "Report": "values",
    "RunVerdict": "evidence_qa",
    "Score": "values",
    "ScoreDefinition": "base",
    "Signature": "signature",
    "Tally": "tally",
    "TriHeEvidence": "evidence_tri_he",
    "TriHeItem": "items",
    "TriHeMetric": "tri_he",
    "Triplet": "triplets",
    "UnknownVariantError": "errors",
    "Verdict": "evidence_tri_he",
    "VidhalItem": "items",
    "VidhalMcqaMetric": "vidhal",
    "VidhalOrderingMetric": "vidhal",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
