"""``hallujudge score infact``."""

from __future__ import annotations

from typing import Annotated

from ..archives import InputOptions
from ..score_run import ScoreRun
from .app import examples, score_app
from .declared_options import DeclaredBy, MetricOptions, grouped
from .run_options import AllowMissing, References, Responses, RunOptions
from .score_command import ScoreCommand


@score_app.command(
    epilog=examples("hallujudge score infact -r answers.jsonl -R questions.jsonl -o results")
)
@grouped
def infact(
    *,
    responses: Responses,
    references: References = None,
    allow_missing: AllowMissing = False,
    metric: Annotated[MetricOptions, DeclaredBy("infact")],
    run: RunOptions,
) -> ScoreCommand:
    """INFACT: the same questions under induced conditions."""
    return run.of(
        ScoreRun(
            "infact",
            responses=responses,
            references=references,
            variant=metric.variant,
            options=metric.options,
            inputs=InputOptions(allow_missing=allow_missing),
        )
    )
