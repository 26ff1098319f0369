"""VidHal: answer -> choice or order -> held against the ranks behind the letters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from hallujudge.metrics import Item, ItemResult
from hallujudge.metrics.vidhal.items import VidhalItem
from hallujudge.metrics.vidhal.metric import VidhalMcqaMetric, VidhalOrderingMetric

from ..cpu import run_cpu
from ..entry import MetricEntry
from ..items import MAX_RESPONSE_CHARS, checked, scored, unscored
from ..resources import Resources
from ..spec import ScoreSpec

__all__ = ["MCQA_ENTRY", "ORDERING_ENTRY", "VidhalPipeline"]


class VidhalPipeline:
    """Reads choices or orders.

    Args:
        metric: What is read, and how.
    """

    notes: tuple[str, ...] = ()

    def __init__(self, metric: VidhalMcqaMetric | VidhalOrderingMetric) -> None:
        self.metric = metric

    @property
    def settings(self) -> Mapping[str, str]:
        """The variant."""
        return {"variant": self.metric.variant, "max_response_chars": str(MAX_RESPONSE_CHARS)}

    async def evaluate(self, items: Sequence[Item]) -> list[ItemResult]:
        """One result for each of the answers, in order."""
        answers = checked(items, VidhalItem)
        return await run_cpu(
            lambda: [self._score(item) for item in answers],
            chars=sum(len(item.response or "") for item in answers),
        )

    def _score(self, item: VidhalItem) -> ItemResult:
        problem = _display_problem(tuple(item.display.items()), len(item.captions))
        if problem is not None:
            return unscored(item, *problem)
        if item.response is None:
            return unscored(item, "RESPONSE_MISSING", "the answer is null or absent")
        if len(item.response) > MAX_RESPONSE_CHARS:
            return unscored(
                item, "RESPONSE_TOO_LONG", f"at most {MAX_RESPONSE_CHARS} characters are read"
            )
        result = self.metric.score_answer(item.response, item.captions, item.display)
        if result.readable:
            return scored(item, result.statistics, result.scores, result.evidence)
        detail = f"no single option can be read in {item.response[:80]!r}"
        return unscored(item, "ANSWER_UNPARSED", detail, result.evidence)


@lru_cache(maxsize=4096)
def _display_problem(display: tuple[tuple[str, int], ...], captions: int) -> tuple[str, str] | None:
    """Why answers can't be scored with this display order: a reason and its words."""
    if not display:
        return (
            "DISPLAY_MISSING",
            "the order in which captions were shown is needed; without it a letter says nothing",
        )
    ranks = sorted(rank for _, rank in display)
    if ranks != list(range(1, len(ranks) + 1)) or len(ranks) < 2:
        return (
            "DISPLAY_INVALID",
            f"the ranks behind the letters are {ranks}; they must be 1 to M, each once, and M ≥ 2",
        )
    if captions and captions != len(ranks):
        return (
            "DISPLAY_INVALID",
            f"{len(ranks)} letters were shown for {captions} captions; "
            "are the options of another release?",
        )
    return None


def _open_mcqa(spec: ScoreSpec, resources: Resources) -> VidhalPipeline:  # noqa: ARG001
    return VidhalPipeline(VidhalMcqaMetric(variant=spec.variant or VidhalMcqaMetric.variants[0]))


def _open_ordering(spec: ScoreSpec, resources: Resources) -> VidhalPipeline:  # noqa: ARG001
    return VidhalPipeline(
        VidhalOrderingMetric(variant=spec.variant or VidhalOrderingMetric.variants[0])
    )


MCQA_ENTRY = MetricEntry(
    name=VidhalMcqaMetric.name,
    description="How often the caption that fits a video best is chosen (Choong et al. 2024).",
    variants=VidhalMcqaMetric.variants,
    score_names=tuple(score.name for score in VidhalMcqaMetric.scores),
    item_type=VidhalItem,
    group_by=("aspect",),
    open=_open_mcqa,
)

ORDERING_ENTRY = MetricEntry(
    name=VidhalOrderingMetric.name,
    description="How well captions are ordered by how much they make up (Choong et al. 2024).",
    variants=VidhalOrderingMetric.variants,
    score_names=tuple(score.name for score in VidhalOrderingMetric.scores),
    item_type=VidhalItem,
    group_by=("aspect",),
    open=_open_ordering,
)
