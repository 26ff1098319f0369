"""``hallujudge score video-hallucer``."""

from __future__ import annotations

from typing import Annotated

from ..score_run import ScoreRun
from .app import ExitCode, examples, score_app
from .declared_options import DeclaredBy, MetricOptions, grouped
from .run_options import Responses, RunOptions

__all__: list[str] = []


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
) -> ExitCode:
    """VideoHallucer: pairs of basic and hallucinated questions."""
    return run.of(ScoreRun("video-hallucer", responses=responses, variant=metric.variant)).execute()
