"""EventHallusion: answers and held judgements -> yes or no -> comparison with the labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hallujudge.metrics import ItemResult
from hallujudge.metrics.event_hallusion.evidence import EventHallusionEvidence
from hallujudge.metrics.event_hallusion.items import EventHallusionItem, EventQuestion
from hallujudge.metrics.event_hallusion.metric import EventHallusionMetric
from hallujudge.metrics.framework.reasons import UnscoredReason
from hallujudge.metrics.framework.result import ScoredItem

from ..entry import MetricEntry, Trial
from ..pipelines import TextPipeline
from ..resources import Resources
from ..responses import Problem, ResponseCheck
from ..spec import ScoreSpec

__all__ = ["ENTRIES", "EventHallusionPipeline"]


class EventHallusionPipeline(TextPipeline[EventHallusionItem, EventHallusionMetric]):
    """Parses a video's answers and its judgement."""

    item_type = EventHallusionItem
    counts_unread = True

    @property
    def settings(self) -> Mapping[str, str]:
        """Where judgements come from, then how responses are checked."""
        return {"judgements": "given", **super().settings}

    def size(self, items: Sequence[EventHallusionItem]) -> int:
        """Return the number of characters that scoring items reads."""
        return sum(len(text) for item in items for text in self.texts(item) if text)

    def texts(self, item: EventHallusionItem) -> Sequence[str | None]:
        """Return what the model answered, and what was said about its description."""
        return [*(question.response for question in item.questions), item.judgement]

    def result(self, item: EventHallusionItem) -> ItemResult:
        """Return the result of one video, with its split among the fields."""
        fields = {"split": item.split, **item.fields} if item.split else item.fields
        return replace(super().result(item), fields=fields)

    def problem(self, item: EventHallusionItem) -> Problem | None:
        """Return why a video can't be scored; None: it can."""
        if not item.questions and item.judgement is None:
            return UnscoredReason.REFERENCE_MISSING, "it has neither a question nor a judgement"
        for question in item.questions:
            if question.label not in ("yes", "no"):
                shown = question.label[:80]
                return UnscoredReason.LABEL_INVALID, f"the label is {shown!r}; give yes or no"
        return None

    def score(self, item: EventHallusionItem) -> ScoredItem[EventHallusionEvidence]:
        """Return the statistics of a video; in ``corrected`` without its failed responses."""
        if self.metric.variant == "corrected":
            item = replace(item, questions=tuple(map(self._without_failed, item.questions)))
        return self.metric.score_video(item)

    def _without_failed(self, question: EventQuestion) -> EventQuestion:
        failed = self.responses.problem(question.response) is not None
        return replace(question, response=None) if failed else question

    def unread(self, item: EventHallusionItem) -> Problem:
        """Return why a video is unscored of which nothing could be parsed."""
        said = [text or "" for text in self.texts(item)]
        shown = next((text[:80] for text in said if text), "")
        return UnscoredReason.ANSWER_UNPARSED, f"no answer or judgement can be parsed: {shown!r}"


def _open(spec: ScoreSpec, resources: Resources) -> EventHallusionPipeline:  # noqa: ARG001
    responses = ResponseCheck(spec.options)
    metric = EventHallusionMetric(variant=spec.variant, responses=responses.signature)
    return EventHallusionPipeline(metric, responses)


ENTRIES = (
    MetricEntry(
        metric=EventHallusionMetric,
        item_type=EventHallusionItem,
        trial=Trial(
            item=EventHallusionItem(
                id="1",
                split="entire",
                questions=(EventQuestion(label="no", response="No."),),
                judgement="Yes.",
            ),
            score="question_accuracy",
            value=1.0,
        ),
        group_by=("split",),
        open=_open,
    ),
)
"""The metrics of the family."""
