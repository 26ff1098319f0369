"""``hallujudge score mementos``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..archives import InputOptions
from ..errors import InvalidInputError
from ._commands import (
    AllowDuplicates,
    AllowUnknown,
    Confidence,
    Format,
    GroupBy,
    IdKey,
    Out,
    Replicates,
    Seed,
    Server,
    TextKey,
    score_app,
    split_formats,
)
from ._judging import (
    FallbackModel,
    JudgeFlags,
    LlmModel,
    LlmUrl,
    MaxCalls,
    MaxCost,
    VerdictCacheFile,
)
from ._main import ExitCode
from ._qa import AllowMissing
from ._run import ScoreRun

__all__: list[str] = []

_GRAPH_HELP = (
    "a shipped name, or a file (ours, {word: {second: [roots]}} as released, or its .pkl); "
    "DOMAIN=GRAPH for one domain, repeatable. Without it, the shipped graphs of each domain."
)


@score_app.command()
def mementos(
    out: Out,
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
    llm_url: LlmUrl = None,
    llm_model: LlmModel = None,
    fallback_model: FallbackModel = None,
    max_calls: MaxCalls = None,
    max_cost: MaxCost = None,
    verdict_cache: VerdictCacheFile = None,
    id_key: IdKey = None,
    text_key: TextKey = None,
    allow_unknown: AllowUnknown = False,
    allow_missing: AllowMissing = False,
    allow_duplicates: AllowDuplicates = False,
    group_by: GroupBy = None,
    seed: Seed = 0,
    replicates: Replicates = 1000,
    confidence: Confidence = 0.95,
    server: Server = None,
    format: Format = None,
) -> ExitCode:
    """Mementos: objects and behaviours of image sequences."""
    if (responses is None) == (keywords is None):
        raise InvalidInputError("give either --responses or --keywords")
    flags = JudgeFlags(
        llm_url=llm_url,
        llm_model=llm_model,
        fallback_model=fallback_model,
        max_calls=max_calls,
        max_cost=max_cost,
        verdict_cache=verdict_cache,
    )
    return ScoreRun(
        metric="mementos",
        responses=responses or keywords or Path(),
        references=references,
        out=out,
        server=server,
        judges=flags.settings(server),
        variant=variant,
        graphs={**_roles("objects", object_graph), **_roles("behaviors", behavior_graph)},
        options={
            # Keywords that were given are scored as they are, and nothing else is read.
            "extractor": extractor if keywords is None else "given",
            "average": average,
            **({"domain": domain} if domain else {}),
        },
        group_by=tuple(dict.fromkeys(("domain", *(group_by or ())))),
        seed=seed,
        replicates=replicates,
        confidence=confidence,
        inputs=InputOptions(
            id_key=id_key,
            text_key=text_key,
            allow_unknown=allow_unknown,
            allow_missing=allow_missing,
            allow_duplicates=allow_duplicates,
        ),
        formats=split_formats(format),
    ).execute()


def _roles(role: str, graphs: list[str] | None) -> dict[str, str]:
    """Graphs by role: ``objects``, or ``objects.DOMAIN`` for those of one domain."""
    roles: dict[str, str] = {}
    for value in graphs or ():
        domain, equals, name = value.partition("=")
        single = not equals or Path(value).exists()
        key, graph = (role, value) if single else (f"{role}.{domain}", name)
        if key in roles:
            raise InvalidInputError(f"two graphs for {key}: {roles[key]} and {graph}; give one")
        roles[key] = graph
    return roles
