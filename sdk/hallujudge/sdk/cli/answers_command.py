"""``hallujudge score NAME`` of every benchmark of closed questions, made from its declaration."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
from .declared_options import DeclaredBy, MetricOptions
from .options import Estimate, JudgeOptions
from .output import show_page, write_file
from .parameters import option
from .run_options import InputsOf, RunOptions
from .score_command import ScoreCommand

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


@dataclass(frozen=True, slots=True, kw_only=True)
class _NoQuestions:
    """Options of a benchmark whose files hold their labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Questions(_NoQuestions):
    """Options of a benchmark whose labels may come in files of their own."""

    references: Annotated[
        list[str] | None,
        input_option(
            "--references",
            "-R",
            metavar="FILE",
            help="File of questions, and files of their labels; repeatable.",
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lists(_NoQuestions):
    """Options of a benchmark whose lists of questions say what answers are not in them."""

    references: Annotated[
        list[str] | None,
        input_option(
            "--references", "-R", metavar="FILE", help="List of the questions; repeatable."
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _OneVariant:
    """Options of a benchmark with one variant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Variants(_OneVariant):
    """Options of a benchmark with several variants."""

    all_parsers: Annotated[
        bool,
        output_option("--all-parsers", help="Table of all answer parsers, also in parsers.json."),
    ] = False
    # The former name of --parser.
    reader: Annotated[str, option(hidden=True)] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _NoJudges:
    """Options of a benchmark whose answers are parsed."""

    def settings_of(self, server: str | None) -> dict[str, Any]:  # noqa: ARG002  # of judges
        """Return the options as a run takes them."""
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judges(JudgeOptions, _NoJudges):
    """Options of a benchmark whose answers a language model may judge."""

    estimate: Estimate = False

    def given(self) -> dict[str, object]:
        """Return the options of judges that were given."""
        # slots=True creates a new class, so super() without arguments does not work here.
        given = JudgeOptions.given(self)
        return {name: value for name, value in given.items() if name != "estimate"}

    def settings_of(self, server: str | None) -> dict[str, Any]:
        """Return the judges' settings, and whether only the cost is estimated."""
        return {"judges": self.settings(server), "only_estimate": self.estimate}


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
        questions: _NoQuestions,
        metric: MetricOptions,
        run: RunOptions,
        variants: _OneVariant,
        inputs: InputOptions,
        judges: _NoJudges,
    ) -> ScoreCommand:
        _refuse_unused_tables(benchmark, inputs, metric.options)
        reader = variants.reader if isinstance(variants, _Variants) else ""
        if reader:
            warn_deprecated("the option --reader", removed_in="2.0", instead="--parser")
        scored = run.of(
            replace(metric, variant=reader or metric.variant).scoring(
                responses[0] if len(responses) == 1 else responses,
                getattr(questions, "references", None) or None,
                inputs=inputs,
            ),
            **judges.settings_of(run.at.server),
        )
        after: list[Callable[[ScoreCommand], None]] = []
        if len(files_of_labels(benchmark, scored.run.references)) > 1:
            after.append(_compare_labels)
        if isinstance(variants, _Variants) and variants.all_parsers:
            after.append(partial(_compare_parsers, benchmark))
        return replace(scored, then=partial(_each, after)) if after else scored

    # Judged answers have no parser of their own.
    parsed = benchmark.judged is None and len(benchmark.variants) > 1
    flags = ("--parser",) if parsed else ()
    command.__doc__ = benchmark.title
    command.__name__ = family
    # Help pages list commands in the order of their families' modules.
    command.__module__ = f"{__package__}.{family}"
    command.__annotations__ |= {
        "responses": _ResponseFiles,
        "questions": _Lists
        if metric_of(benchmark).overrides("listed")
        else _Questions
        if benchmark.question_files
        else _NoQuestions,
        "inputs": Annotated[InputOptions, InputsOf(benchmark.name)],
        "judges": _Judges if metric_entry(benchmark.name).judge_option else _NoJudges,
        "metric": Annotated[MetricOptions, DeclaredBy(benchmark.name, *flags)],
        "run": RunOptions,
        "variants": _Variants if parsed else _OneVariant,
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
