"""``hallujudge score NAME`` of the families whose items are more than answers to closed questions.

Annotations are read when a command is made: the options of a family come from its declarations, and
the commands of other families should not wait for those.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

import click

from hallujudge.metrics.framework.metric import LLM_JUDGES, SEES

from ..archives import InputOptions
from ..errors import InvalidInputError
from ..runs.score_run import by_domain
from .app import examples, input_option, metric_option, score_app
from .declared_options import DeclaredBy, InputsOf, MetricOptions
from .options import Estimate, JudgeOptions, MatcherDownload, say_where_pictures_go
from .run_options import Responses, RunOptions, ScoreCommand

_F = TypeVar("_F", bound=Callable[..., Any])
# Family -> its function and the example of its help page.
_COMMANDS: dict[str, tuple[Callable[..., Any], str]] = {}


def _command(*example: str) -> Callable[[_F], _F]:
    """Return a decorator of the function that has the name of its family."""

    def kept(function: _F) -> _F:
        # Help pages list commands in the order of their families' modules.
        function.__module__ = f"{__package__}.{function.__name__}"
        _COMMANDS[function.__name__] = (function, examples(*example))
        return function

    return kept


@cache
def add_command(family: str) -> bool:
    """Add the command of a family to the command line; return whether it has one here."""
    if family not in _COMMANDS:
        return False
    function, example = _COMMANDS[family]
    score_app.command(epilog=example)(function)
    return True


_responses_option = partial(input_option, "--responses", "-r")
_references_option = partial(input_option, "--references", "-R")
_file_of_references = partial(_references_option, metavar="FILE")
_ObjectFiles = Annotated[
    list[str] | None, _file_of_references(help="File of objects, or COCO's own; repeatable.")
]
_ObjectGraph = Annotated[
    str | None, metric_option(help="Synonym graph: a shipped name, or a file.")
]


@_command("hallujudge score chair -r captions.jsonl -R objects.json -o results")
def chair(
    *,
    responses: Responses,
    references: _ObjectFiles = None,
    inputs: Annotated[InputOptions, InputsOf("chair")],
    graph: _ObjectGraph = None,
    metric: Annotated[MetricOptions, DeclaredBy("chair")],
    run: RunOptions,
) -> ScoreCommand:
    """CHAIR: objects that captions mention and images lack."""
    return run.of(metric.scoring(responses, references or None, inputs=inputs, graph=graph))


@_command("hallujudge score object-halbench -r items.jsonl -R objects.json -o results")
def object_halbench(
    *,
    responses: Responses,
    references: _ObjectFiles = None,
    inputs: Annotated[InputOptions, InputsOf("object-halbench")],
    graph: _ObjectGraph = None,
    metric: Annotated[MetricOptions, DeclaredBy("object-halbench")],
    judges: JudgeOptions,
    run: RunOptions,
) -> ScoreCommand:
    """Object HalBench: objects that an answer names and the image lacks."""
    scoring = metric.scoring(responses, references or None, inputs=inputs, graph=graph)
    return run.of(scoring, judges.settings(run.at.server))


@_command("hallujudge score open-objects -r captions.jsonl -R captions.json -o results")
def open_objects(
    *,
    responses: Responses,
    references: Annotated[
        str | None, _file_of_references(help="File of captions or objects of images.")
    ] = None,
    inputs: Annotated[InputOptions, InputsOf("open-objects")],
    graph: _ObjectGraph = None,
    metric: Annotated[MetricOptions, DeclaredBy("open-objects")],
    judges: JudgeOptions,
    run: RunOptions,
) -> ScoreCommand:
    """Open objects: any object that reference captions do not support."""
    scoring = metric.scoring(responses, references, inputs=inputs, graph=graph)
    return run.of(scoring, judges.settings(run.at.server))


@_command(
    "hallujudge score mementos -r descriptions.csv -R human.csv \\",
    "    --domain comics -o results",
)
def mementos(
    *,
    responses: Annotated[
        Path | None, _responses_option(help="File of image names and descriptions.")
    ] = None,
    references: Annotated[
        Path | None, _references_option(help="File of image names and human descriptions.")
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


_DOMAINS = ("daily_life", "robotics", "comics", "general")


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


@_command("hallujudge score tri-he -r answers.jsonl -R scene_graphs.json -o results")
def tri_he(
    *,
    responses: Annotated[
        Path | None, _responses_option(help="File of image_id, question, response.")
    ] = None,
    claims: Annotated[
        Path | None, input_option(help="File of extracted claims, instead of responses.")
    ] = None,
    references: Annotated[
        str | None, _file_of_references(help="File of references, unless responses hold them.")
    ] = None,
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
    scoring = replace(metric, options={**claimed, **metric.options}).scoring(
        responses or claims or Path(),
        references,
        inputs=replace(inputs, own={**inputs.own, **({"claims_only": True} if claims else {})}),
    )
    more = {"matcher_download": 1} if matcher_download else {}
    settings = judges.settings(run.at.server, **more)
    if metric.options.get("judge") == SEES and not (run.quiet or estimate):
        say_where_pictures_go(run.at.server, metric.options, settings)
    return run.of(scoring, settings, only_estimate=estimate)


@_command(
    "hallujudge score seen-claims -r answers.jsonl --images pictures --judge llm \\",
    "    --llm-url http://localhost:8000/v1 --llm-model qwen-vl -o results",
)
def seen_claims(
    *,
    responses: Responses,
    references: Annotated[
        str | None, _file_of_references(help="File of id and picture of each response.")
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


@_command("hallujudge score argus -r evals/judge_model_gpt-4o -o results")
def argus(
    *,
    responses: Annotated[
        str, _responses_option(help="Folder of judged clips, or a file.", show_default=False)
    ],
    inputs: Annotated[InputOptions, InputsOf("argus")],
    metric: Annotated[MetricOptions, DeclaredBy("argus")],
    estimate: Estimate = False,
    judges: JudgeOptions,
    run: RunOptions,
) -> ScoreCommand:
    """ARGUS: hallucinated and omitted lines of video captions."""
    # Verdicts that are asked for need no given ones: the folder may hold captions alone.
    judged = metric.options.get("verdicts") in LLM_JUDGES
    own = {**inputs.own, **({"captions_only": True} if judged else {})}
    scoring = metric.scoring(responses, inputs=replace(inputs, own=own))
    return run.of(scoring, judges.settings(run.at.server), only_estimate=estimate)
