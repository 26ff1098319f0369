"""Metrics: values in, scores out. No network, no files, no models.

Every metric has three parts: statistics of an item, a tally that adds them up, and scores that are
functions of the sums, each with an interval and a signature.

Names are imported when they are first used, so that importing a small value stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .answers.closed_questions import AnswerEvidence
    from .chair import ChairEvidence, ChairItem, ChairMetric, MentionVerdict
    from .errors import MergeError, MetricError, OptionError, UnknownVariantError
    from .framework.claims import ClaimVerdict, Part, Triplet, Verdict
    from .framework.columns_and_scores import Column, ScoreDefinition
    from .framework.intervals import IntervalSettings
    from .framework.metric import Metric
    from .framework.report import Bound, Coverage, Report, Score
    from .framework.results import Evidence, Item, ItemResult, JsonValue, Outcome
    from .framework.signature import Signature
    from .framework.tally import Tally
    from .infact import InfactEvidence, InfactItem, InfactMetric, InfactRun, RunVerdict
    from .pope import PopeItem, PopeMetric
    from .tri_he import TriHeEvidence, TriHeItem, TriHeMetric
    from .vidhal import OrderEvidence, VidhalItem, VidhalMcqaMetric, VidhalOrderingMetric

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
    "AnswerEvidence": "answers.closed_questions",
    "Bound": "framework.report",
    "ChairEvidence": "chair",
    "ChairItem": "chair",
    "ChairMetric": "chair",
    "ClaimVerdict": "framework.claims",
    "Column": "framework.columns_and_scores",
    "Coverage": "framework.report",
    "Evidence": "framework.results",
    "InfactEvidence": "infact",
    "InfactItem": "infact",
    "InfactMetric": "infact",
    "InfactRun": "infact",
    "IntervalSettings": "framework.intervals",
    "Item": "framework.results",
    "ItemResult": "framework.results",
    "JsonValue": "framework.results",
    "MentionVerdict": "chair",
    "MergeError": "errors",
    "Metric": "framework.metric",
    "MetricError": "errors",
    "OptionError": "errors",
    "OrderEvidence": "vidhal",
    "Outcome": "framework.results",
    "Part": "framework.claims",
    "PopeItem": "pope",
    "PopeMetric": "pope",
    "Report": "framework.report",
    "RunVerdict": "infact",
    "Score": "framework.report",
    "ScoreDefinition": "framework.columns_and_scores",
    "Signature": "framework.signature",
    "Tally": "framework.tally",
    "TriHeEvidence": "tri_he",
    "TriHeItem": "tri_he",
    "TriHeMetric": "tri_he",
    "Triplet": "framework.claims",
    "UnknownVariantError": "errors",
    "Verdict": "framework.claims",
    "VidhalItem": "vidhal",
    "VidhalMcqaMetric": "vidhal",
    "VidhalOrderingMetric": "vidhal",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
