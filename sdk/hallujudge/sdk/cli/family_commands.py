"""``hallujudge score NAME`` of families whose items are more than answers to questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated, TypeVar

import click

from hallujudge.metrics.framework.metric import LLM_JUDGES, SEES

from ..archives import InputOptions
from ..errors import InvalidInputError
from ..runs.score_run import ScoreRun, by_domain
from .app import examples, input_option, metric_option, score_app
from .declared_options import DeclaredBy, MetricOptions, ScoreCommand, grouped
from .options import Estimate, JudgeOptions, MatcherDownload, say_where_pictures_go
from .run_options import InputsOf, ObjectFiles, ObjectGraph, References, Responses, RunOptions

# Family -> its command, and the example of its help page in one or more lines.
_COMMANDS: dict[str, tuple[Callable[..., ScoreCommand], Sequence[str]]] = {}
_Command = TypeVar("_Command", bound=Callable[..., ScoreCommand])


@cache
def add_command(family: str) -> None:
    """Add the command of a family to the command line: only its own options are made then."""
    command, example = _COMMANDS[family]
    # Help pages list commands in the order of their families' modules.
    command.__module__ = f"{__package__}.{family}"
    score_app.command(family.replace("_", "-"), epilog=examples(*example))(grouped(command))


def _score_command(*example: str) -> Callable[[_Command], _Command]:
    """Return a decorator that notes a function as the command of the family that names it."""

    def noted(command: _Command) -> _Command:
        _COMMANDS[command.__name__] = command, example
        return command

    return noted


@_score_command("hallujudge score chair -r captions.jsonl -R objects.json -o results")
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
    )


@_score_command("hallujudge score object-halbench -r items.jsonl -R objects.json -o results")
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
    scoring = ScoreRun(
        "object-halbench",
        responses=responses,
        references=references or None,
        variant=metric.variant,
        graph=graph,
        options=metric.options,
        inputs=inputs,
    )
    return run.of(scoring, judges.settings(run.at.server))


@_score_command("hallujudge score open-objects -r captions.jsonl -R captions.json -o results")
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
    scoring = ScoreRun(
        "open-objects",
        responses=responses,
        references=references,
        variant=metric.variant,
        graph=graph,
        options=metric.options,
        inputs=inputs,
    )
    return run.of(scoring, judges.settings(run.at.server))


_DOMAINS = ("daily_life", "robotics", "comics", "general")


@_score_command(
    "hallujudge score mementos -r descriptions.csv -R human.csv \\",
    "    --domain comics -o results",
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
        Path | None,
        input_option("--keywords", help="Extracted keywords instead of responses: file or folder."),
    ] = None,
    inputs: Annotated[InputOptions, InputsOf("mementos")],
    object_graph: Annotated[
        list[str] | None,
        metric_option("--object-graph", help="Graph of objects, or DOMAIN=GRAPH; repeatable."),
    ] = None,
    behavior_graph: Annotated[
        list[str] | None,
        metric_option("--behavior-graph", help="Graph of behaviours, or DOMAIN=GRAPH; repeatable."),
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
    scoring = ScoreRun(
        "mementos",
        responses=responses or keywords or Path(),
        references=references,
        variant=metric.variant,
        graph={**_roles("objects", object_graph), **_roles("behaviors", behavior_graph)},
        options={**metric.options, **given},
        inputs=inputs,
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


@_score_command("hallujudge score tri-he -r answers.jsonl -R scene_graphs.json -o results")
def tri_he(
    *,
    responses: Annotated[
        Path | None, input_option("--responses", "-r", help="File of image_id, question, response.")
    ] = None,
    claims: Annotated[
        Path | None,
        input_option("--claims", help="File of extracted claims, instead of responses."),
    ] = None,
    references: References = None,
    inputs: Annotated[InputOptions, InputsOf("tri-he")],
    metric: Annotated[MetricOptions, DeclaredBy("tri-he")],
    matcher_download: MatcherDownload = False,
    estimate: Estimate = False,
    judges: JudgeOptions,
    run: RunOptions,
) -> ScoreCommand:
    """Tri-HE: claims of answers, compared with scene graphs."""
    if (responses is None) == (claims is None):
        raise InvalidInputError("give either --responses or --claims")
    # Without a chosen extractor, given claims need none.
    claimed = {"extractor": "given"} if claims else {}
    scoring = ScoreRun(
        "tri-he",
        responses=responses or claims or Path(),
        references=references,
        variant=metric.variant,
        options={**claimed, **metric.options},
        inputs=replace(inputs, own={**inputs.own, **({"claims_only": True} if claims else {})}),
    )
    more = {"matcher_download": 1} if matcher_download else {}
    settings = judges.settings(run.at.server, **more)
    if metric.options.get("judge") == SEES and not (run.quiet or estimate):
        say_where_pictures_go(run.at.server, metric.options, settings)
    return run.of(scoring, settings, only_estimate=estimate)


@_score_command(
    "hallujudge score seen-claims -r answers.jsonl --images pictures --judge llm \\",
    "    --llm-url http://localhost:8000/v1 --llm-model qwen-vl -o results",
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
    scoring = ScoreRun(
        "seen-claims",
        responses=responses,
        references=references,
        variant=metric.variant,
        options=metric.options,
        inputs=inputs,
    )
    return run.of(scoring, settings, only_estimate=estimate)


@_score_command("hallujudge score argus -r evals/judge_model_gpt-4o -o results")
def argus(
    *,
    responses: Annotated[
        str,
        input_option(
            "--responses", "-r", help="Folder of judged clips, or a file.", show_default=False
        ),
    ],
    inputs: Annotated[InputOptions, InputsOf("argus")],
    metric: Annotated[MetricOptions, DeclaredBy("argus")],
    estimate: Estimate = False,
    judges: JudgeOptions,
    run: RunOptions,
) -> ScoreCommand:
    """ARGUS: hallucinated and omitted lines of video captions."""
    judged = metric.options.get("verdicts") in LLM_JUDGES
    scoring = ScoreRun(
        "argus",
        responses=responses,
        variant=metric.variant,
        options=metric.options,
        inputs=replace(inputs, own={**inputs.own, **({"captions_only": True} if judged else {})}),
    )
    return run.of(scoring, judges.settings(run.at.server), only_estimate=estimate)
