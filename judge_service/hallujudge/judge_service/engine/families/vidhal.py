"""VidHal: answer -> choice or order -> comparison with the ranks behind the letters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from hallujudge.metrics.answers.closed_questions import AnswerEvidence
from hallujudge.metrics.framework.reasons import UnscoredReason
from hallujudge.metrics.framework.results import ScoredItem
from hallujudge.metrics.vidhal import (
    OrderEvidence,
    VidhalItem,
    VidhalMcqaMetric,
    VidhalOrderingMetric,
)

from ..pipelines import TextPipeline
from ..registry import MetricEntry, Trial
from ..resources import Resources
from ..responses import Problem, ResponseCheck
from ..spec import ScoreSpec


class VidhalPipeline(TextPipeline[VidhalItem, "VidhalMcqaMetric | VidhalOrderingMetric"]):
    """Parses choices or orders."""

    item_type = VidhalItem
    response_name = "the answer"

    @property
    def settings(self) -> Mapping[str, str]:
        """The parser."""
        return {"variant": self.metric.variant, **super().settings}

    def problem(self, item: VidhalItem) -> Problem | None:
        """Return why an answer can't be scored, or None if it can."""
        shown = _display_problem(tuple(item.display.items()), len(item.captions))
        return shown or super().problem(item)

    def score(self, item: VidhalItem) -> ScoredItem[AnswerEvidence] | ScoredItem[OrderEvidence]:
        """Return the statistics of an answer."""
        assert item.response is not None, "this is a problem"
        return self.metric.score_answer(item.response, item.captions, item.display)

    def unread(self, item: VidhalItem) -> Problem:
        """Return why an answer that is not a single option is unscored."""
        detail = f"no single option can be read in {(item.response or '')[:80]!r}"
        return UnscoredReason.ANSWER_UNPARSED, detail


# A few captions have few display orders, which repeat in an archive.
@lru_cache(maxsize=4096)
def _display_problem(display: tuple[tuple[str, int], ...], captions: int) -> Problem | None:
    """Return why answers can't be scored with this display order, or None if they can."""
    if not display:
        return (
            UnscoredReason.DISPLAY_MISSING,
            "the order in which captions were shown is needed; without it a letter says nothing",
        )
    ranks = sorted(rank for _, rank in display)
    if ranks != list(range(1, len(ranks) + 1)) or len(ranks) < 2:
        return (
            UnscoredReason.DISPLAY_INVALID,
            f"the ranks behind the letters are {ranks}; they must be 1 to M, each once, and M ≥ 2",
        )
    if captions and captions != len(ranks):
        return (
            UnscoredReason.DISPLAY_INVALID,
            f"{len(ranks)} letters were shown for {captions} captions; "
            "are the options of another release?",
        )
    return None


def _opener(
    metric: type[VidhalMcqaMetric | VidhalOrderingMetric],
) -> Callable[[ScoreSpec, Resources], VidhalPipeline]:
    def opened(spec: ScoreSpec, resources: Resources) -> VidhalPipeline:  # noqa: ARG001
        responses = ResponseCheck(spec.options)
        made = metric(variant=spec.variant, responses=responses.signature)
        return VidhalPipeline(made, responses)

    return opened


def _shown(response: str) -> VidhalItem:
    return VidhalItem(id="1", response=response, display={"A": 2, "B": 1, "C": 3})


ENTRIES = (
    MetricEntry(
        metric=VidhalMcqaMetric,
        item_type=VidhalItem,
        trial=Trial(item=_shown("B"), score="accuracy", value=1.0),
        group_by=("aspect",),
        open=_opener(VidhalMcqaMetric),
    ),
    MetricEntry(
        metric=VidhalOrderingMetric,
        item_type=VidhalItem,
        trial=Trial(item=_shown("B, A, C"), score="ndcg", value=1.0),
        group_by=("aspect",),
        open=_opener(VidhalOrderingMetric),
    ),
)
