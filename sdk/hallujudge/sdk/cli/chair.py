"""``hallujudge score chair``."""

from __future__ import annotations

from typing import Annotated

from ..archives import InputOptions
from .app import examples, score_app
from .declared_options import DeclaredBy, MetricOptions
from .run_options import InputsOf, ObjectFiles, ObjectGraph, Responses, RunOptions
from .score_command import ScoreCommand


@score_app.command(
    epilog=examples("hallujudge score chair -r captions.jsonl -R objects.json -o results")
)
def chair(
    *,
    responses: Responses,
    references: ObjectFiles = None,
    inputs: Annotated[InputOptions, InputsOf("chair")],
    graph: ObjectGraph = None,
    metric: Annotated[MetricOptions, DeclaredBy("chair")],
    run: RunOptions,
) -> ScoreCommand:
    """CHAIR: objects that captions mention and images lack."""
    return run.of(metric.scoring(responses, references or None, inputs=inputs, graph=graph))
