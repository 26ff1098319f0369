"""Metrics: values in, scores out. No network, no files, no models.

Every metric has three parts: statistics of an item, a tally that adds them up, and scores that are
functions of the sums, each with an interval and a signature.

Names are imported when they are first used, so that importing a small value stays fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .framework import names_on_use

if TYPE_CHECKING:
    from .answers.closed_questions import (
        Answer,
        AnswersEvidence,
        AnswersItem,
        AnswerVerdict,
        one_answer,
    )
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
    from .infact import InfactMetric
    from .tri_he import TriHeEvidence, TriHeItem, TriHeMetric
    from .vidhal import VidhalMcqaMetric, VidhalOrderingMetric

__all__ = [
    "Answer",
    "AnswerVerdict",
    "AnswersEvidence",
    "AnswersItem",
    "Bound",
    "ChairEvidence",
    "ChairItem",
    "ChairMetric",
    "ClaimVerdict",
    "Column",
    "Coverage",
    "Evidence",
    "InfactMetric",
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
    "Part",
    "Report",
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
    "VidhalMcqaMetric",
    "VidhalOrderingMetric",
    "one_answer",
]

_NAMES = {
    ".answers.closed_questions": ("Answer AnswersEvidence AnswersItem AnswerVerdict one_answer"),
    ".chair": "ChairEvidence ChairItem ChairMetric MentionVerdict",
    ".errors": "MergeError MetricError OptionError UnknownVariantError",
    ".framework.claims": "ClaimVerdict Part Triplet Verdict",
    ".framework.columns_and_scores": "Column ScoreDefinition",
    ".framework.intervals": "IntervalSettings",
    ".framework.metric": "Metric",
    ".framework.report": "Bound Coverage Report Score",
    ".framework.results": "Evidence Item ItemResult JsonValue Outcome",
    ".framework.signature": "Signature",
    ".framework.tally": "Tally",
    ".infact": "InfactMetric",
    ".tri_he": "TriHeEvidence TriHeItem TriHeMetric",
    ".vidhal": "VidhalMcqaMetric VidhalOrderingMetric",
}
"""Module -> the public names that it defines."""

__getattr__, __dir__ = names_on_use(__name__, _NAMES)
