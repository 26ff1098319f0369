"""AMBER: nouns of descriptions -> object words; answers -> yes or no."""

from __future__ import annotations

from collections.abc import Mapping

from hallujudge.metrics.amber.items import GENERATIVE, KINDS, AmberItem
from hallujudge.metrics.amber.metric import AmberMetric
from hallujudge.metrics.framework.reasons import UnscoredReason
from hallujudge.metrics.framework.result import Evidence, ScoredItem

from ..entry import MetricEntry, Trial
from ..pipelines import TextPipeline
from ..resources import Resources
from ..responses import Problem, ResponseCheck
from ..spec import ScoreSpec

__all__ = ["ENTRIES", "AmberPipeline"]


class AmberPipeline(TextPipeline[AmberItem, AmberMetric]):
    """Compares object words with the image's objects, and answers with their labels."""

    item_type = AmberItem
    counts_unread = True

    @property
    def settings(self) -> Mapping[str, str]:
        """Where nouns come from and how they are compared, then how responses are checked."""
        return {"nouns": "given", "words": "equal", **super().settings}

    def problem(self, item: AmberItem) -> Problem | None:
        """Return why an item can't be scored; None: it can."""
        if item.kind == GENERATIVE:
            return self._description_problem(item)
        if item.kind not in KINDS:
            known = ", ".join((GENERATIVE, *KINDS))
            return UnscoredReason.REFERENCE_MISSING, f"the kind is {item.kind!r:.80}, not {known}"
        if item.label not in ("yes", "no"):
            return UnscoredReason.LABEL_INVALID, f"the label is {item.label!r:.80}; give yes or no"
        return self.responses.problem(item.response, "the answer")

    def _description_problem(self, item: AmberItem) -> Problem | None:
        """Return why a description can't be scored; its text is not needed beside its nouns."""
        only_nouns = item.response is None and item.nouns_given
        problem = self.responses.problem(item.response, "the description")
        if problem is not None and not only_nouns:
            return problem
        if not item.nouns_given:
            return UnscoredReason.KEYWORDS_MISSING, "no nouns are given; add them"
        if not item.objects:
            return UnscoredReason.REFERENCE_MISSING, "the image has no annotated object"
        return None

    def score(self, item: AmberItem) -> ScoredItem[Evidence]:
        """Return the statistics of a description or an answer."""
        if item.kind == GENERATIVE:
            return self.metric.score_description(item)
        return self.metric.score_answer(item)


def _open(spec: ScoreSpec, resources: Resources) -> AmberPipeline:  # noqa: ARG001
    responses = ResponseCheck(spec.options)
    return AmberPipeline(
        AmberMetric(variant=spec.variant, responses=responses.signature), responses
    )


ENTRIES = (
    MetricEntry(
        metric=AmberMetric,
        item_type=AmberItem,
        trial=Trial(
            item=AmberItem(id="1", kind="existence", response="No", label="no"),
            score="accuracy",
            value=1 / 1.001,
        ),
        open=_open,
    ),
)
"""The metrics of the family."""
