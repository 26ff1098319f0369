"""``hallujudge score event-hallusion``."""

from __future__ import annotations

from typing import Annotated

from ..archives import InputOptions
from ..score_run import ScoreRun
from .app import examples, score_app
from .declared_options import DeclaredBy, MetricOptions, grouped
from .options import Estimate, JudgeOptions
from .run_options import Responses, RunOptions
from .score_command import ScoreCommand


@score_app.command(
    "event-hallusion",
    epilog=examples("hallujudge score event-hallusion -r predictions.json -o results"),
)
@grouped
def event_hallusion(
    *,
    responses: Responses,
    metric: Annotated[MetricOptions, DeclaredBy("event-hallusion")],
    estimate: Estimate = False,
    judges: JudgeOptions,
    run: RunOptions,
) -> ScoreCommand:
    """EventHallusion: questions about events in videos, and judged descriptions."""
    scoring = ScoreRun(
        "event-hallusion",
        responses=responses,
        variant=metric.variant,
        options=metric.options,
        inputs=InputOptions(),
    )
    return run.of(scoring, judges.settings(run.at.server), only_estimate=estimate)
