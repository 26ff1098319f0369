"""``hallujudge score mementos``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..archives import InputOptions
from ..errors import InvalidInputError
from ..score_run import ScoreRun
from .app import ExitCode, score_app
from .groups import grouped
from .judging import JudgeOptions
from .options import AllowDuplicates, AllowMissing, RunOptions, by_domain

__all__: list[str] = []

_GRAPH_HELP = (
    "a shipped name, or a file (ours, {word: {second: [roots]}} as released, or its .pkl); "
    "DOMAIN=GRAPH for one domain, repeatable. Without it, the shipped graphs of each domain."
)


@score_app.command()
@grouped
def mementos(
    *,
    responses: Annotated[
        Path | None,
        typer.Option("--responses", help="CSV or JSON lines: image or image_name, description."),
    ] = None,
    references: Annotated[
        Path | None,
        typer.Option("--references", help="CSV or JSON lines of human descriptions."),
    ] = None,
    keywords: Annotated[
        Path | None,
        typer.Option(
            "--keywords",
            help="Keywords already extracted, instead of responses: JSON lines (items.jsonl of an "
            "earlier run too), or a folder of released text files.",
        ),
    ] = None,
    object_graph: Annotated[
        list[str] | None, typer.Option("--object-graph", help=f"Graph of objects: {_GRAPH_HELP}")
    ] = None,
    behavior_graph: Annotated[
        list[str] | None,
        typer.Option("--behavior-graph", help="Graph of behaviours: as for objects."),
    ] = None,
    domain: Annotated[
        str,
        typer.Option("--domain", help="Domain of items that name none; otherwise general."),
    ] = "",
    variant: Annotated[
        str, typer.Option("--variant", help="published (the released script) or corrected.")
    ] = "published",
    extractor: Annotated[
        str, typer.Option("--extractor", help="Who takes keywords from descriptions: rules or llm.")
    ] = "rules",
    average: Annotated[
        str,
        typer.Option("--average", help="Means over sequences, or pooled over all keywords."),
    ] = "sequences",
    allow_missing: AllowMissing = False,
    allow_duplicates: AllowDuplicates = False,
    run: RunOptions,
    judges: JudgeOptions,
) -> ExitCode:
    """Mementos: objects and behaviours of image sequences."""
    if (responses is None) == (keywords is None):
        raise InvalidInputError("give either --responses or --keywords")
    scoring = ScoreRun(
        "mementos",
        responses=responses or keywords or Path(),
        references=references,
        variant=variant,
        graph={**_roles("objects", object_graph), **_roles("behaviors", behavior_graph)},
        options={
            # Keywords that were given are scored as they are, and nothing else is read.
            "extractor": extractor if keywords is None else "given",
            "average": average,
            **({"domain": domain} if domain else {}),
        },
        inputs=InputOptions(allow_missing=allow_missing, allow_duplicates=allow_duplicates),
    )
    return run.of(scoring, judges.settings(run.server)).execute()


def _roles(role: str, graphs: list[str] | None) -> dict[str, str]:
    """Graphs by role: ``objects``, or ``objects.DOMAIN`` for those of one domain."""
    return {
        f"{role}.{domain}" if domain else role: graph
        for domain, graph in by_domain(graphs, role).items()
    }
