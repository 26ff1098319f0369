"""``hallujudge score chair``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..archives import InputOptions
from ..score_run import ScoreRun
from .app import ExitCode, score_app
from .groups import grouped
from .options import AllowDuplicates, References, Responses, RunOptions

__all__: list[str] = []


@score_app.command()
@grouped
def chair(
    *,
    responses: Responses,
    references: References = None,
    graph: Annotated[
        str | None,
        typer.Option("--graph", help="Synonym graph: a shipped name, or a file."),
    ] = None,
    variant: Annotated[str, typer.Option("--variant", help="Variant of the metric.")] = (
        "published"
    ),
    count: Annotated[
        str, typer.Option("--count", help="What chair_i counts: mentions, or objects once each.")
    ] = "mentions",
    id_map: Annotated[
        Path | None,
        typer.Option("--id-map", help="JSON list: position or question_id -> image id."),
    ] = None,
    allow_duplicates: AllowDuplicates = False,
    run: RunOptions,
) -> ExitCode:
    """CHAIR: objects that captions mention and images lack."""
    inputs = InputOptions(id_map=id_map, allow_duplicates=allow_duplicates)
    return run.of(
        ScoreRun(
            "chair",
            responses=responses,
            references=references,
            variant=variant,
            graph=graph,
            options={"count": count},
            inputs=inputs,
        )
    ).execute()
