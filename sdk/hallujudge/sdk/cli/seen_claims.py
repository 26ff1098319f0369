"""``hallujudge score seen-claims``."""

from __future__ import annotations

from typing import Annotated

import click

from ..archives import InputOptions
from .app import examples, input_option, score_app
from .declared_options import DeclaredBy, MetricOptions
from .options import Estimate, JudgeOptions, say_where_pictures_go
from .run_options import InputsOf, Responses, RunOptions
from .score_command import ScoreCommand


@score_app.command(
    "seen-claims",
    epilog=examples(
        "hallujudge score seen-claims -r answers.jsonl --images pictures --judge llm \\",
        "    --llm-url http://localhost:8000/v1 --llm-model qwen-vl -o results",
    ),
)
def seen_claims(
    *,
    responses: Responses,
    references: Annotated[
        str | None,
        input_option(
            "--references", "-R", metavar="FILE", help="File of id and picture of each response."
        ),
    ] = None,
    inputs: Annotated[InputOptions, InputsOf("seen-claims")],
    metric: Annotated[MetricOptions, DeclaredBy("seen-claims")],
    estimate: Estimate = False,
    judges: JudgeOptions,
    run: RunOptions,
) -> ScoreCommand:
    """Seen claims: claims that a judge does not see in the picture."""
    settings = judges.settings(run.at.server)
    if not (run.quiet or estimate):
        say_where_pictures_go(run.at.server, metric.options, settings)
        if (hosts := inputs.own.get("fetch")) is not None:
            click.echo(f"pictures are fetched from {hosts}", err=True)
    scoring = metric.scoring(responses, references, inputs=inputs)
    return run.of(scoring, settings, only_estimate=estimate)
