"""POPE: answer -> yes or no -> comparison with the label."""

from __future__ import annotations

from collections.abc import Mapping

from hallujudge.metrics.answers.closed_questions import AnswerEvidence
from hallujudge.metrics.framework.reasons import UnscoredReason
from hallujudge.metrics.framework.results import ScoredItem
from hallujudge.metrics.pope import PopeItem, PopeMetric

from ..entry import MetricEntry, Trial
from ..pipelines import TextPipeline
from ..resources import Resources
from ..responses import Problem, ResponseCheck
from ..spec import ScoreSpec

__all__ = ["ENTRIES", "PopePipeline"]


class PopePipeline(TextPipeline[PopeItem, PopeMetric]):
    """Parses yes/no answers."""

    item_type = PopeItem
    response_name = "the answer"
    counts_unread = True

    @property
    def settings(self) -> Mapping[str, str]:
        """The parser, and how often an item of several categories counts."""
        settings = {"parser": self.metric.variant, **super().settings}
        if self.metric.repeated_by:
            settings["overall"] = f"one row for each {self.metric.repeated_by} of a question"
        return settings

    def problem(self, item: PopeItem) -> Problem | None:
        """Return why an answer can't be scored; None: it can."""
        if problem := self.responses.problem(item.response, self.response_name):
            return problem
        if not item.label:
            return UnscoredReason.REFERENCE_MISSING, "no label for this question"
        if item.label not in ("yes", "no"):
            return UnscoredReason.LABEL_INVALID, f"the label is {item.label!r}; give yes or no"
        return None

    def score(self, item: PopeItem) -> ScoredItem[AnswerEvidence]:
        """Return the statistics of an answer."""
        assert item.response is not None, "this is a problem"
        return self.metric.score_answer(item.response, item.label)

    def unread(self, item: PopeItem) -> Problem:
        """Return why an answer that is neither yes nor no is unscored."""
        detail = f"{(item.response or '')[:80]!r} is neither a clear yes nor a clear no"
        return UnscoredReason.ANSWER_UNPARSED, detail


def _open(spec: ScoreSpec, resources: Resources) -> PopePipeline:  # noqa: ARG001
    responses = ResponseCheck(spec.options)
    return PopePipeline(PopeMetric(variant=spec.variant, responses=responses.signature), responses)


ENTRIES = (
    MetricEntry(
        metric=PopeMetric,
        item_type=PopeItem,
        trial=Trial(
            item=PopeItem(id="1", response="Yes.", label="yes"), score="accuracy", value=1.0
        ),
        group_by=("category",),
        open=_open,
    ),
)
