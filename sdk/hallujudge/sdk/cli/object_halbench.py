"""``hallujudge score object-halbench``."""

from __future__ import annotations

from typing import Annotated

from ..archives import InputOptions
from ..runs.score_run import ScoreRun
from .app import examples, input_option, metric_option, score_app
from .declared_options import DeclaredBy, MetricOptions, ScoreCommand, grouped
from .options import JudgeOptions
from .run_options import InputsOf, Responses, RunOptions


@score_app.command(
    "object-halbench",
    epilog=examples("hallujudge score object-halbench -r items.jsonl -R objects.json -o results"),
)
@grouped
def object_halbench(
    *,
    responses: Responses,
    references: Annotated[
        list[str] | None,
        input_option(
            "--references",
            "-R",
            metavar="FILE",
            help="File of objects, or COCO's own; repeatable.",
        ),
    ] = None,
    inputs: Annotated[InputOptions, InputsOf("object-halbench")],
    graph: Annotated[
        str | None, metric_option("--graph", help="Synonym graph: a shipped name, or a file.")
    ] = None,
    metric: Annotated[MetricOptions, DeclaredBy("object-halbench")],
    judges: JudgeOptions,
    run: RunOptions,
) -> ScoreCommand:
    """Object HalBench: objects that an answer names and the image lacks."""
    scoring = ScoreRun(
        "object-halbench",
        responses=responses,
        references=references or None,
        variant=metric.variant,
        graph=graph,
        options=metric.options,
        inputs=inputs,
    )
    return run.of(scoring, judges.settings(run.at.server))
