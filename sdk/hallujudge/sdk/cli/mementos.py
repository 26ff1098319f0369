"""``hallujudge score mementos``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from ..archives import InputOptions
from ..errors import InvalidInputError
from ..runs.score_run import by_domain
from .app import examples, input_option, metric_option, score_app
from .declared_options import DeclaredBy, MetricOptions
from .options import JudgeOptions
from .run_options import InputsOf, RunOptions
from .score_command import ScoreCommand

_DOMAINS = ("daily_life", "robotics", "comics", "general")


@score_app.command(
    epilog=examples(
        "hallujudge score mementos -r descriptions.csv -R human.csv \\",
        "    --domain comics -o results",
    )
)
def mementos(
    *,
    responses: Annotated[
        Path | None,
        input_option("--responses", "-r", help="File of image names and descriptions."),
    ] = None,
    references: Annotated[
        Path | None,
        input_option("--references", "-R", help="File of image names and human descriptions."),
    ] = None,
    keywords: Annotated[
        Path | None, input_option(help="Extracted keywords instead of responses: file or folder.")
    ] = None,
    inputs: Annotated[InputOptions, InputsOf("mementos")],
    object_graph: Annotated[
        list[str] | None, metric_option(help="Graph of objects, or DOMAIN=GRAPH; repeatable.")
    ] = None,
    behavior_graph: Annotated[
        list[str] | None, metric_option(help="Graph of behaviours, or DOMAIN=GRAPH; repeatable.")
    ] = None,
    metric: Annotated[MetricOptions, DeclaredBy("mementos")],
    judges: JudgeOptions,
    run: RunOptions,
) -> ScoreCommand:
    """Mementos: objects and behaviours of image sequences."""
    if (responses is None) == (keywords is None):
        raise InvalidInputError("give either --responses or --keywords")
    # Given keywords are scored as they are; no descriptions are read.
    given = {"extractor": "given"} if keywords else {}
    scoring = replace(metric, options={**metric.options, **given}).scoring(
        responses or keywords or Path(),
        references,
        inputs=inputs,
        graph={**_roles("objects", object_graph), **_roles("behaviors", behavior_graph)},
    )
    return run.of(scoring, judges.settings(run.at.server))


def _roles(role: str, graphs: list[str] | None) -> dict[str, str]:
    """Return graphs by role: ``objects``, or ``objects.DOMAIN`` for one domain."""
    chosen = by_domain(graphs, role)
    for domain, graph in chosen.items():
        if domain not in ("", *_DOMAINS):
            raise InvalidInputError(
                f"--{role.removesuffix('s')}-graph {domain}={graph}: {domain!r} is neither a "
                f"domain ({', '.join(_DOMAINS)}) nor the beginning of a file's name"
            )
    return {f"{role}.{domain}" if domain else role: graph for domain, graph in chosen.items()}
