"""``hallujudge score NAME`` of every metric.

The command of a benchmark of closed questions is made from its declaration; families whose items
are more than answers have a function each. Annotations are read when a command is made: options
come from declarations of metrics, and the commands of other families should not wait for those.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

import click

from hallujudge import sdk
from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.judge_service.engine.responses import MAX_RESPONSE_CHARS
from hallujudge.metrics import AnswersItem
from hallujudge.metrics.answers.closed_questions import ClosedQuestions
from hallujudge.metrics.answers.declared_metrics import VariantComparison, metric_of
from hallujudge.metrics.errors import warn_deprecated
from hallujudge.metrics.families import benchmarks_of
from hallujudge.metrics.framework.json_values import schema_of
from hallujudge.metrics.framework.metric import LLM_JUDGES, SEES
from hallujudge.sdk import cli

from ..archives import InputOptions
from ..archives.inputs import declared_inputs
from ..errors import InvalidInputError
from ..runs.manifest import LABELS, PARSERS
from ..runs.score_run import by_domain
from .app import FamilyGroup, examples, input_option, metric_option, output_option, score_app
from .declared_options import DeclaredBy, InputsOf, MetricOptions
from .options import Estimate, JudgeOptions, MatcherDownload, say_where_pictures_go
from .output import show_page, write_file
from .parameters import Some, option
from .run_options import Responses, RunOptions, ScoreCommand

# The option's value by which a computed table comes from a file.
_GIVEN = "given"
# Answers are parsed in batches, so that a long archive is never in memory as a whole.
_BATCH = 4096

_responses_option = partial(input_option, "--responses", "-r")
_references_option = partial(input_option, "--references", "-R")
_file_of_references = partial(_references_option, metavar="FILE")
# Texts, not paths: a path drops one of the slashes of a URL.
_ResponseFiles = Annotated[
    list[str],
    _responses_option(
        metavar="FILE",
        help="File, folder, pattern or URL; - for stdin; repeatable.",
        show_default=False,
    ),
]


# What a benchmark's references are: its lists of questions say what answers do not, or questions
# with labels that may come in files of their own.
_LISTS = "List of the questions; repeatable."
_QUESTIONS = "File of questions, and files of their labels; repeatable."
_ALL_PARSERS = output_option(
    "--all-parsers", help="Table of all answer parsers, also in parsers.json."
)
_VARIANTS = Some(
    all_parsers=(Annotated[bool, _ALL_PARSERS], False),
    # The former name of --parser.
    reader=(Annotated[str, option(hidden=True)], ""),
)


_F = TypeVar("_F", bound=Callable[..., Any])
# Family -> its function and the example of its help page.
_FUNCTIONS: dict[str, tuple[Callable[..., Any], str]] = {}
_ADDED: dict[str, ClosedQuestions] = {}


@cache
def _add_function(family: str) -> None:
    """Add the command that a family has a function for."""
    function, example = _FUNCTIONS[family]
    score_app.command(epilog=example)(function)


def add_commands(family: str) -> bool:
    """Add the commands of a family, once for a declaration; return whether it has any here."""
    if family in _FUNCTIONS:
        _add_function(family)
    declared = benchmarks_of(family)
    for benchmark in declared:
        if _ADDED.get(benchmark.name) is benchmark:
            continue
        if benchmark.name in _ADDED:
            # Its file was edited: its options may be others.
            assert isinstance(score_app, FamilyGroup), "its class is given where it is made"
            score_app.forget(benchmark.name)
        _ADDED[benchmark.name] = benchmark
        command = _command_of(benchmark, family)
        score_app.command(benchmark.name, epilog=_epilog(benchmark))(command)
    return bool(declared) or family in _FUNCTIONS


def _epilog(benchmark: ClosedQuestions) -> str:
    questions = benchmark.question_files
    given = f"-r answers.jsonl -R {questions}" if questions else "-r answers/"
    # Tables that few runs need would make the example longer than a line.
    shown = [t.name for t in benchmark.tables if t.form not in ("answers", "whole", "lines")]
    flags, files = _flags(benchmark), cli.usual_files(benchmark.name) if shown else {}
    needed = "".join(f"{flags[name]} {files[name][0]} " for name in shown)
    command = f"hallujudge score {benchmark.name} {given}"
    if needed:
        return examples(f"{command} \\", f"    {needed}-o results")
    return examples(f"{command} -o results")


def _flags(benchmark: ClosedQuestions) -> Mapping[str, str]:
    """Return table -> its flag on the command line."""
    return {option.name: option.flag for option in declared_inputs(benchmark.name).own}


def _command_of(benchmark: ClosedQuestions, family: str) -> Any:
    def command(
        *,
        responses: _ResponseFiles,
        questions: Mapping[str, list[str] | None],
        metric: MetricOptions,
        run: RunOptions,
        variants: Mapping[str, Any],
        inputs: InputOptions,
        judges: JudgeOptions | Mapping[str, object],
        estimate: Mapping[str, bool],
    ) -> ScoreCommand:
        _refuse_unused_tables(benchmark, inputs, metric.options)
        if reader := variants.get("reader"):
            warn_deprecated("the option --reader", removed_in="2.0", instead="--parser")
        scored = run.of(
            replace(metric, variant=reader or metric.variant).scoring(
                responses[0] if len(responses) == 1 else responses,
                questions.get("references") or None,
                inputs=inputs,
            ),
            judges.settings(run.at.server) if isinstance(judges, JudgeOptions) else None,
            only_estimate=estimate.get("estimate", False),
        )
        after: list[Callable[[ScoreCommand], None]] = []
        if len(cli.files_of_labels(benchmark, scored.run.references)) > 1:
            after.append(_compare_labels)
        if variants.get("all_parsers"):
            after.append(partial(_compare_parsers, benchmark))
        return replace(scored, then=tuple(after))

    # Judged answers have no parser of their own.
    parsed = benchmark.judged is None and len(benchmark.variants) > 1
    flags = ("--parser",) if parsed else ()
    judged = bool(metric_entry(benchmark.name).judge_option)
    listed = metric_of(benchmark).overrides("listed")
    flag = _file_of_references(help=_LISTS if listed else _QUESTIONS)
    references = Some(references=(Annotated[list[str] | None, flag], None))
    command.__doc__ = benchmark.title
    command.__name__ = family
    # Help pages list commands in the order of their families' modules.
    command.__module__ = f"{__package__}.{family}"
    command.__annotations__ |= {
        "responses": _ResponseFiles,
        "questions": Annotated[Any, references if listed or benchmark.question_files else Some()],
        "inputs": Annotated[InputOptions, InputsOf(benchmark.name)],
        "estimate": Annotated[Any, Some(estimate=(Estimate, False)) if judged else Some()],
        "judges": JudgeOptions if judged else Annotated[Any, Some()],
        "metric": Annotated[MetricOptions, DeclaredBy(benchmark.name, *flags)],
        "run": RunOptions,
        "variants": Annotated[Any, _VARIANTS if parsed else Some()],
    }
    return command


def _refuse_unused_tables(
    benchmark: ClosedQuestions, inputs: InputOptions, options: Mapping[str, object]
) -> None:
    """Refuse a file that the metric's options leave unused.

    Raises:
        InvalidInputError: There is one; the message names it.
    """
    computed = [table.name for table in benchmark.tables if table.computed]
    # A table is in one file or made by an option: neither may be ignored in silence.
    of_tables = [each.name for each in benchmark.options if each.default == _GIVEN]
    for table, name in zip(computed, of_tables, strict=False):
        file, chosen = inputs.own.get(table), options.get(name, _GIVEN)
        if file and chosen != _GIVEN:
            flag = _flags(benchmark)[table]
            raise InvalidInputError(
                f"{flag} {file} and --{name} {chosen} are both given; choose one"
            )


def _compare_labels(command: ScoreCommand) -> None:
    """Score the same answers by every set of labels, and print and write both.

    Raises:
        HallujudgeError: A set of labels can't be used, or the file can't be written.
    """
    # In this process also for a run of a server: labels change no reply, and parsing costs little.
    with sdk.Client.embedded() as client:
        found = cli.score_label_sets(client, command.run)
    assert found is not None, "asked only with several sets"
    write_file(command.out / LABELS, found.to_text())
    if command.prints_table:
        show_page(cli.label_page(found), "table")


def _compare_parsers(benchmark: ClosedQuestions, command: ScoreCommand) -> None:
    """Score the same answers by every parser, and print and write the table.

    Raises:
        OutputError: The table can't be written.
    """
    comparison = VariantComparison(metric_of(benchmark))
    # The archive is read again, since a run keeps no items.
    rest = iter(cli.PreparedRun.of(command.run).items)
    while batch := list(islice(rest, _BATCH)):
        comparison.add(list(filter(_is_complete, cast("list[AnswersItem]", batch))))
    table = comparison.scores()
    content = {"schema": schema_of("parsers"), "parsers": table}
    write_file(command.out / PARSERS, json.dumps(content, indent=1, allow_nan=False) + "\n")
    if command.prints_table:
        click.echo("\n".join(_table_lines(table)))


def _is_complete(item: AnswersItem) -> bool:
    return all(
        answer.response is not None and answer.label and len(answer.response) <= MAX_RESPONSE_CHARS
        for answer in item.answers
    )


def _table_lines(table: Mapping[str, Mapping[str, float | None]]) -> Iterator[str]:
    """Yield the lines of a table of parser -> score -> value."""
    names = list(next(iter(table.values())))
    yield "the same answers under every parser"
    yield f"{'parser':<11}" + "".join(f"{name:>15}" for name in names)
    for parser, scores in table.items():
        cells = ("–" if (value := scores[name]) is None else f"{value:.4f}" for name in names)
        yield f"{parser:<11}" + "".join(f"{cell:>15}" for cell in cells)


def _command(*example: str) -> Callable[[_F], _F]:
    """Return a decorator of the function that has the name of its family."""

    def kept(function: _F) -> _F:
        # Help pages list commands in the order of their families' modules.
        function.__module__ = f"{__package__}.{function.__name__}"
        _FUNCTIONS[function.__name__] = (function, examples(*example))
        return function

    return kept


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
