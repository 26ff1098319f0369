"""``hallujudge score open-objects``."""

from __future__ import annotations

from typing import Annotated

from ..archives import InputOptions
from .app import examples, input_option, score_app
from .declared_options import DeclaredBy, MetricOptions
from .options import JudgeOptions
from .run_options import InputsOf, ObjectGraph, Responses, RunOptions
from .score_command import ScoreCommand


@score_app.command(
    "open-objects",
    epilog=examples("hallujudge score open-objects -r captions.jsonl -R captions.json -o results"),
)
def open_objects(
    *,
    responses: Responses,
    references: Annotated[
        str | None,
        input_option(
            "--references", "-R", metavar="FILE", help="File of captions or objects of images."
        ),
    ] = None,
    inputs: Annotated[InputOptions, InputsOf("open-objects")],
    graph: ObjectGraph = None,
    metric: Annotated[MetricOptions, DeclaredBy("open-objects")],
    judges: JudgeOptions,
    run: RunOptions,
) -> ScoreCommand:
    """Open objects: any object that reference captions do not support."""
    scoring = metric.scoring(responses, references, inputs=inputs, graph=graph)
    return run.of(scoring, judges.settings(run.at.server))
