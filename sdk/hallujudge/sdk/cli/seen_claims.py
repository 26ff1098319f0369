"""``hallujudge score seen-claims``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from ..archives import InputOptions
from ..runs.score_run import ScoreRun
from .app import examples, input_option, score_app
from .declared_options import DeclaredBy, MetricOptions, ScoreCommand, grouped
from .options import Estimate, JudgeOptions
from .run_options import InputsOf, Responses, RunOptions


@score_app.command(
    "seen-claims",
    epilog=examples(
        "hallujudge score seen-claims -r answers.jsonl --images pictures --judge llm \\",
        "    --llm-url http://localhost:8000/v1 --llm-model qwen-vl -o results",
    ),
)
@grouped
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
        _say_where(run.at.server, metric.options, settings)
    scoring = ScoreRun(
        "seen-claims",
        responses=responses,
        references=references,
        variant=metric.variant,
        options=metric.options,
        inputs=inputs,
    )
    return run.of(scoring, settings, only_estimate=estimate)


def _say_where(
    server: str | None, options: Mapping[str, str], settings: Mapping[str, object]
) -> None:
    """Print which addresses pictures go to, before anything else is done."""
    from hallujudge.judge_service.engine.judge_options import LLM_NAMES, judges_of
    from hallujudge.judge_service.settings.connection import listed, masked
    from hallujudge.judge_service.settings.server_settings import load_settings

    judge, panel = options.get("judge", "given"), options.get("panel", "")
    if judge == "given" and not panel:
        return
    if server is not None:
        typer.echo(f"pictures go to {server}, and from there to its judge", err=True)
        return
    known = load_settings(dict(settings)).judges
    names = listed(panel) if panel else judges_of(known, judge)
    places = [
        f"{masked(url)} (model {getattr(known, f'{name}_model')})"
        for name in names
        if name in LLM_NAMES
        for url in listed(getattr(known, f"{name}_url"))
    ]
    if places:
        typer.echo(f"pictures go to {' and '.join(places)}, and nowhere else", err=True)
