"""``hallujudge score chair``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ..archives import InputOptions
from ..score_run import ScoreRun
from .app import ExitCode, score_app
from .declared import DeclaredBy, MetricOptions
from .groups import grouped
from .options import AllowDuplicates, Responses, RunOptions
from .panels import examples, input_option, metric_option

__all__: list[str] = []


@score_app.command(
    epilog=examples("hallujudge score chair -r captions.jsonl -R objects.json -o results")
)
@grouped
def chair(
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
    id_map: Annotated[
        Path | None,
        input_option("--id-map", help="JSON list: position or question_id -> image id."),
    ] = None,
    allow_duplicates: AllowDuplicates = False,
    graph: Annotated[
        str | None, metric_option("--graph", help="Synonym graph: a shipped name, or a file.")
    ] = None,
    metric: Annotated[MetricOptions, DeclaredBy("chair")],
    run: RunOptions,
) -> ExitCode:
    """CHAIR: objects that captions mention and images lack."""
    inputs = InputOptions(id_map=id_map, allow_duplicates=allow_duplicates)
    return run.of(
        ScoreRun(
            "chair",
            responses=responses,
            references=references or None,
            variant=metric.variant,
            graph=graph,
            options=metric.options,
            inputs=inputs,
        )
    ).execute()
