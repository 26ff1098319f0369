"""Metrics: values in, scores out. No network, no files, no models.

Every metric has three parts: statistics of an item, a tally that adds them up, and scores that are
functions of the sums, each with an interval and a signature.

Names are imported when they are first used, so that importing a small value stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .answers.evidence import AnswerEvidence
    from .chair.evidence import ChairEvidence, MentionVerdict
    from .chair.items import ChairItem
    from .chair.metric import ChairMetric
    from .errors import MergeError, MetricError, OptionError, UnknownVariantError
    from .framework.claims import ClaimVerdict, Part, Verdict
    from .framework.intervals import IntervalSettings
    from .framework.item import Item
    from .framework.metric import Column, Metric, ScoreDefinition
    from .framework.report import Bound, Coverage, Report, Score
    from .framework.result import Evidence, ItemResult, JsonValue, Outcome
    from .framework.signature import Signature
    from .framework.tally import Tally
    from .framework.triplets import Triplet
    from .infact.evidence import InfactEvidence, RunVerdict
    from .infact.items import InfactItem, InfactRun
    from .infact.metric import InfactMetric
    from .pope.items import PopeItem
    from .pope.metric import PopeMetric
    from .tri_he.evidence import TriHeEvidence
    from .tri_he.items import TriHeItem
    from .tri_he.metric import TriHeMetric
    from .vidhal.evidence import OrderEvidence
    from .vidhal.items import VidhalItem
    from .vidhal.metric import VidhalMcqaMetric, VidhalOrderingMetric

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
    "AnswerEvidence": "answers.evidence",
    "Bound": "framework.report",
    "ChairEvidence": "chair.evidence",
    "ChairItem": "chair.items",
    "ChairMetric": "chair.metric",
    "ClaimVerdict": "framework.claims",
    "Column": "framework.metric",
    "Coverage": "framework.report",
    "Evidence": "framework.result",
    "InfactEvidence": "infact.evidence",
    "InfactItem": "infact.items",
    "InfactMetric": "infact.metric",
    "InfactRun": "infact.items",
    "IntervalSettings": "framework.intervals",
    "Item": "framework.item",
    "ItemResult": "framework.result",
    "JsonValue": "framework.result",
    "MentionVerdict": "chair.evidence",
    "MergeError": "errors",
    "Metric": "framework.metric",
    "MetricError": "errors",
    "OptionError": "errors",
    "OrderEvidence": "vidhal.evidence",
    "Outcome": "framework.result",
    "Part": "framework.claims",
    "PopeItem": "pope.items",
    "PopeMetric": "pope.metric",
    "Report": "framework.report",
    "RunVerdict": "infact.evidence",
    "Score": "framework.report",
    "ScoreDefinition": "framework.metric",
    "Signature": "framework.signature",
    "Tally": "framework.tally",
    "TriHeEvidence": "tri_he.evidence",
    "TriHeItem": "tri_he.items",
    "TriHeMetric": "tri_he.metric",
    "Triplet": "framework.triplets",
    "UnknownVariantError": "errors",
    "Verdict": "framework.claims",
    "VidhalItem": "vidhal.items",
    "VidhalMcqaMetric": "vidhal.metric",
    "VidhalOrderingMetric": "vidhal.metric",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
