"""Metrics: values in, scores out. No network, no files, no models.

Every metric has three parts: statistics of an item, a tally that adds them up, and scores that are
functions of the sums, each with an interval and a signature.

Names are imported when they are first used, so that importing a small value stays fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .framework import names_on_use

if TYPE_CHECKING:
    from .answers.closed_questions import Answer as Answer
    from .answers.closed_questions import AnswersEvidence as AnswersEvidence
    from .answers.closed_questions import AnswersItem as AnswersItem
    from .answers.closed_questions import AnswerVerdict as AnswerVerdict
    from .answers.closed_questions import one_answer as one_answer
    from .chair import ChairEvidence as ChairEvidence
    from .chair import ChairItem as ChairItem
    from .chair import ChairMetric as ChairMetric
    from .chair import MentionVerdict as MentionVerdict
    from .errors import MergeError as MergeError
    from .errors import MetricError as MetricError
    from .errors import OptionError as OptionError
    from .errors import UnknownVariantError as UnknownVariantError
    from .framework.claims import ClaimVerdict as ClaimVerdict
    from .framework.claims import Part as Part
    from .framework.claims import Triplet as Triplet
    from .framework.claims import Verdict as Verdict
    from .framework.columns_and_scores import Column as Column
    from .framework.columns_and_scores import ScoreDefinition as ScoreDefinition
    from .framework.intervals import IntervalSettings as IntervalSettings
    from .framework.metric import Metric as Metric
    from .framework.report import Bound as Bound
    from .framework.report import Coverage as Coverage
    from .framework.report import Report as Report
    from .framework.report import Score as Score
    from .framework.results import Evidence as Evidence
    from .framework.results import Item as Item
    from .framework.results import ItemResult as ItemResult
    from .framework.results import JsonValue as JsonValue
    from .framework.results import Outcome as Outcome
    from .framework.signature import Signature as Signature
    from .framework.tally import Tally as Tally
    from .infact import InfactMetric as InfactMetric
    from .tri_he import TriHeEvidence as TriHeEvidence
    from .tri_he import TriHeItem as TriHeItem
    from .tri_he import TriHeMetric as TriHeMetric
    from .vidhal import VidhalMcqaMetric as VidhalMcqaMetric
    from .vidhal import VidhalOrderingMetric as VidhalOrderingMetric

__getattr__, __dir__ = names_on_use(__name__)
__all__ = __dir__()
