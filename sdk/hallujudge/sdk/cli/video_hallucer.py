"""``hallujudge score video-hallucer``."""

from __future__ import annotations

from typing import Annotated

from ..score_run import ScoreRun
from .app import examples, score_app
from .declared_options import DeclaredBy, MetricOptions, grouped
from .run_options import Responses, RunOptions
from .score_command import ScoreCommand


@score_app.command(
    "video-hallucer",
    epilog=examples("hallujudge score video-hallucer -r answers/ -o results"),
)
@grouped
def video_hallucer(
    *,
    responses: Responses,
    metric: Annotated[MetricOptions, DeclaredBy("video-hallucer")],
    run: RunOptions,
) -> ScoreCommand:
    """VideoHallucer: pairs of basic and hallucinated questions."""
    return run.of(ScoreRun("video-hallucer", responses=responses, variant=metric.variant))
