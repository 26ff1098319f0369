"""``hallujudge score object-halbench``."""

from __future__ import annotations

from typing import Annotated

from ..archives import InputOptions
from .app import examples, score_app
from .declared_options import DeclaredBy, MetricOptions
from .options import JudgeOptions
from .run_options import InputsOf, ObjectFiles, ObjectGraph, Responses, RunOptions
from .score_command import ScoreCommand


@score_app.command(
    "object-halbench",
    epilog=examples("hallujudge score object-halbench -r items.jsonl -R objects.json -o results"),
)
def object_halbench(
    *,
    responses: Responses,
    references: ObjectFiles = None,
    inputs: Annotated[InputOptions, InputsOf("object-halbench")],
    graph: ObjectGraph = None,
    metric: Annotated[MetricOptions, DeclaredBy("object-halbench")],
    judges: JudgeOptions,
    run: RunOptions,
) -> ScoreCommand:
    """Object HalBench: objects that an answer names and the image lacks."""
    scoring = metric.scoring(responses, references or None, inputs=inputs, graph=graph)
    return run.of(scoring, judges.settings(run.at.server))
