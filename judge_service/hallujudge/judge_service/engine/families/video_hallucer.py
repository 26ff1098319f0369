"""VideoHallucer: two answers -> right or wrong, alone and as a pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hallujudge.metrics import ItemResult, Outcome
from hallujudge.metrics.framework.reasons import UnscoredReason
from hallujudge.metrics.framework.results import ScoredItem
from hallujudge.metrics.video_hallucer import (
    BASIC,
    HALLUCINATION,
    SETS,
    VideoHallucerEvidence,
    VideoHallucerItem,
    VideoHallucerMetric,
    VideoHallucerRun,
)

from ..pipelines import TextPipeline
from ..registry import MetricEntry, Trial
from ..resources import Resources
from ..responses import Problem, ResponseCheck
from ..spec import ScoreSpec


class VideoHallucerPipeline(TextPipeline[VideoHallucerItem, VideoHallucerMetric]):
    """Parses the two answers of a pair."""

    item_type = VideoHallucerItem
    counts_unread = True

    def texts(self, item: VideoHallucerItem) -> Sequence[str | None]:
        """Return both answers."""
        return [run.response for run in item.runs.values()]

    def placed(self, item: VideoHallucerItem, result: ItemResult) -> ItemResult:
        """Return the result of one pair, which has a row even where it is unscored."""
        own = {"set": item.set_name, "kind": item.kind}
        placed = replace(
            result,
            fields={name: value for name, value in own.items() if value} | dict(item.fields),
        )
        if placed.outcome is Outcome.UNSCORED and not placed.statistics:
            return replace(placed, statistics=self.metric.unscored_row(item, unparsed=False))
        return placed

    def problem(self, item: VideoHallucerItem) -> Problem | None:
        """Return why a pair can't be scored, or None if it can."""
        if item.set_name not in SETS:
            return UnscoredReason.PLACE_INVALID, (
                f"the set {item.set_name!r} is not one of {', '.join(SETS)}"
            )
        for name in (BASIC, HALLUCINATION):
            run = item.runs.get(name)
            if run is None:
                return UnscoredReason.RESPONSE_MISSING, f"there is no {name} answer"
            if problem := self.responses.problem(run.response, f"the {name} answer"):
                return problem
            if run.label not in ("yes", "no"):
                return (
                    UnscoredReason.LABEL_INVALID,
                    f"the {name} label is {run.label!r}; give yes or no",
                )
        return None

    def score(self, item: VideoHallucerItem) -> ScoredItem[VideoHallucerEvidence]:
        """Return the statistics of a pair."""
        return self.metric.score_pair(item)

    def unread(self, item: VideoHallucerItem) -> Problem:
        """Return why a pair with an answer that is neither yes nor no is unscored."""
        shown = " and ".join(f"{(run.response or '')[:80]!r}" for run in item.runs.values())
        return UnscoredReason.ANSWER_UNPARSED, f"{shown} are not a clear yes or no each"


def _open(spec: ScoreSpec, resources: Resources) -> VideoHallucerPipeline:  # noqa: ARG001
    responses = ResponseCheck(spec.options)
    metric = VideoHallucerMetric(variant=spec.variant, responses=responses.signature)
    return VideoHallucerPipeline(metric, responses)


_RUNS: Mapping[str, VideoHallucerRun] = {
    BASIC: VideoHallucerRun(response="Yes.", label="yes"),
    HALLUCINATION: VideoHallucerRun(response="No.", label="no"),
}
ENTRIES = (
    MetricEntry(
        metric=VideoHallucerMetric,
        item_type=VideoHallucerItem,
        trial=Trial(
            item=VideoHallucerItem(id="1", set_name=SETS[0], runs=_RUNS),
            score="pair_accuracy",
            value=1.0,
        ),
        group_by=("set",),
        open=_open,
    ),
)
