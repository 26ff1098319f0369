"""``hallujudge score NAME`` of every benchmark of closed questions, made from its declaration."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Annotated, Any, cast

import click

from hallujudge import sdk
from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.judge_service.engine.responses import MAX_RESPONSE_CHARS
from hallujudge.metrics import AnswersItem
from hallujudge.metrics.answers.closed_questions import ClosedQuestions
from hallujudge.metrics.answers.declared_metrics import VariantComparison, metric_of
from hallujudge.metrics.errors import warn_deprecated
from hallujudge.metrics.families import benchmarks_of
from hallujudge.metrics.framework.file_schemas import schema_of
from hallujudge.sdk import cli

from ..archives import InputOptions
from ..archives.example_files import usual_files
from ..archives.inputs import declared_inputs
from ..archives.label_sets import files_of_labels
from ..errors import InvalidInputError
from ..runs.manifest import LABELS, PARSERS
from ..runs.run_inputs import PreparedRun
from .app import FamilyGroup, examples, input_option, output_option, score_app
from .declared_options import DeclaredBy, InputsOf, MetricOptions
from .options import Estimate, JudgeOptions
from .output import show_page, write_file
from .parameters import Some, option
from .run_options import RunOptions, ScoreCommand

# The option's value by which a computed table comes from a file.
_GIVEN = "given"
# Answers are parsed in batches, so that a long archive is never in memory as a whole.
_BATCH = 4096


# Texts, not paths: a path drops one of the slashes of a URL.
_ResponseFiles = Annotated[
    list[str],
    input_option(
        "--responses",
        "-r",
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


_ADDED: dict[str, ClosedQuestions] = {}


def add_commands(family: str) -> None:
    """Add the commands of a family's benchmarks to the command line, once for a declaration."""
    for benchmark in benchmarks_of(family):
        if _ADDED.get(benchmark.name) is benchmark:
            continue
        if benchmark.name in _ADDED:
            # Its file was edited: its options may be others.
            assert isinstance(score_app, FamilyGroup), "its class is given where it is made"
            score_app.forget(benchmark.name)
        _ADDED[benchmark.name] = benchmark
        command = _command_of(benchmark, family)
        score_app.command(benchmark.name, epilog=_epilog(benchmark))(command)


def _epilog(benchmark: ClosedQuestions) -> str:
    questions = benchmark.question_files
    given = f"-r answers.jsonl -R {questions}" if questions else "-r answers/"
    # Tables that few runs need would make the example longer than a line.
    shown = [t.name for t in benchmark.tables if t.form not in ("answers", "whole", "lines")]
    flags, files = _flags(benchmark), usual_files(benchmark.name) if shown else {}
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
        if len(files_of_labels(benchmark, scored.run.references)) > 1:
            after.append(_compare_labels)
        if variants.get("all_parsers"):
            after.append(partial(_compare_parsers, benchmark))
        return replace(scored, then=partial(_each, after)) if after else scored

    # Judged answers have no parser of their own.
    parsed = benchmark.judged is None and len(benchmark.variants) > 1
    flags = ("--parser",) if parsed else ()
    judged = bool(metric_entry(benchmark.name).judge_option)
    listed = metric_of(benchmark).overrides("listed")
    help_text = _LISTS if listed else _QUESTIONS
    flag = input_option("--references", "-R", metavar="FILE", help=help_text)
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


def _each(after: Sequence[Callable[[ScoreCommand], None]], command: ScoreCommand) -> None:
    for step in after:
        step(command)


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
    rest = iter(PreparedRun.of(command.run).items)
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
