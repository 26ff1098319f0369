"""Commands on archives: ``hallujudge score all`` and ``archive inspect``.

``hallujudge demo`` and ``hallujudge new`` write example archives to try commands with.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import click

from hallujudge import sdk
from hallujudge.metrics.errors import choose_from
from hallujudge.metrics.families import metric_names
from hallujudge.sdk import cli

from .. import archives
from ..archives.inputs import declared_inputs
from ..archives.json_files import named
from ..errors import InvalidInputError
from .app import (
    ExitCode,
    app,
    command_group,
    examples,
    input_option,
    metric_option,
    output_option,
    score_app,
)
from .declared_options import option_text
from .options import ModelNames, ServerOptions, model_names
from .output import (
    LISTING_FORMATS,
    Format,
    NewFolder,
    Overwrite,
    check_formats,
    in_flags,
    show_page,
    show_result,
)
from .parameters import argument
from .run_options import Workers

if TYPE_CHECKING:
    from ..archives import ArchiveSummary
    from ..comparison.overview import LeftOut, Overview, ScoredRun
    from ..comparison.planned_runs import RunChoice


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scoring:
    """Which archives are scored, with which files and options, and where the scores go."""

    folder: Annotated[
        str, argument(metavar="FOLDER", help="Folder or URL with archives of models.")
    ]
    references: Annotated[
        list[str] | None,
        input_option(
            "--references",
            "-R",
            metavar="METRIC=FILE",
            help="References of a metric, as in chair=FILE; repeatable.",
        ),
    ] = None
    inputs: Annotated[
        list[str] | None,
        input_option(
            "--input",
            metavar="METRIC.NAME=FILE",
            help="Its further files, as in mmhal.reviews=FILE; repeatable.",
        ),
    ] = None
    options: Annotated[
        list[str] | None,
        metric_option(
            "--option",
            metavar="METRIC.NAME=VALUE",
            help="Its variant or option, as in amber.nouns=rules; repeatable.",
        ),
    ] = None
    runs: Annotated[
        str,
        input_option(
            metavar="NAME", help="Of several runs of a task: newest whole, largest, or all."
        ),
    ] = "newest"
    model_name: ModelNames = None
    out: NewFolder
    output_format: Format = "table"
    workers: Workers = 0
    resume: Annotated[
        bool, output_option("--resume", help="Continuation of runs that stopped in --out.")
    ] = False
    overwrite: Overwrite = False
    at: ServerOptions

    def overview(self, on_run: Callable[[ScoredRun | LeftOut], None]) -> Overview:
        """Score the archives.

        Args:
            on_run: Called with each archive that was scored, or left out.

        Raises:
            InvalidInputError: An option is not understood, or both server and processes are given.
        """
        known, further = _by_metric(self.references or []), _by_option(self.inputs or [])
        settings, server = _by_setting(self.options or []), self.at.server
        # Zero means as many as are useful here, which at a server are none.
        if server is not None and self.workers > 1:
            raise InvalidInputError(
                f"--workers {self.workers}: the server scores, with its own processes; leave one "
                "of them out"
            )
        connection = self.at.connection()
        client = (
            sdk.Client.embedded() if server is None else sdk.Client(server, connection=connection)
        )
        with client:
            return sdk.score_all(
                self.folder,
                self.out,
                client=client,
                references=known,
                inputs=further,
                options=settings,
                runs=cast("RunChoice", self.runs),
                model_names=model_names(self.model_name),
                workers=self.workers,
                resume=self.resume,
                overwrite=self.overwrite,
                on_run=on_run,
            )


@score_app.command("all", epilog=examples("hallujudge score all logs -o scores"))
def score_all(context: click.Context, given: _Scoring) -> ExitCode:
    """Every archive of a folder, by every metric that applies, with one overview."""
    overview = given.overview(partial(_print_progress, context.obj))
    if given.output_format == "table":
        # The wide table of all metrics is in overview.md, which is as wide as it needs to be.
        show_page(overview.narrow_page(), given.output_format)
    else:
        show_result(overview, given.output_format)
    # On standard error, so that the result on standard output can be read by a program.
    click.echo(f"written to {given.out}", err=True)
    if not overview.runs:
        return ExitCode.FAILED
    return ExitCode.OK if overview.complete else ExitCode.UNSCORED


def _by_metric(given: list[str]) -> dict[str, list[str]]:
    """Return metric -> files of its references."""
    # One metric may have several files of references, so that the flag is repeated.
    found: dict[str, list[str]] = {}
    for pair in given:
        metric, _, path = pair.partition("=")
        if metric not in metric_names() or not path:
            raise InvalidInputError(
                f"--references {pair}: write a metric, an equals sign and a file, such as "
                "chair=objects.json"
            )
        found.setdefault(metric, []).append(path)
    return found


def _by_option(given: list[str]) -> dict[str, dict[str, object]]:
    """Return metric -> name of an option of its archives -> file."""
    found: dict[str, dict[str, object]] = {}
    for pair in given:
        option, _, path = pair.partition("=")
        metric, _, name = option.partition(".")
        known = {o.flag.lstrip("-"): o for o in declared_inputs(metric).own if o.kind == "file"}
        if name not in known or not path:
            there = ", ".join(f"{metric}.{each}" for each in known)
            raise InvalidInputError(
                f"--input {pair}: write a metric, a dot, an option for its files, an equals sign "
                f"and a file, such as {there or 'mmhal.reviews'}=FILE"
            )
        found.setdefault(metric, {})[known[name].name] = path
    return found


def _by_setting(given: list[str]) -> dict[str, dict[str, object]]:
    """Return metric -> its variant and options by name."""
    found: dict[str, dict[str, object]] = {}
    for pair in given:
        key, _, value = pair.partition("=")
        metric, _, flag = key.partition(".")
        entry = cli.entries().get(metric)
        known = {o.name.replace("_", "-"): o for o in entry.options} if entry is not None else {}
        values = entry.variants if entry and flag == cli.VARIANT else ()
        if not value or not (values or flag in known):
            names = [f"{metric}.{each}" for each in (cli.VARIANT, *known) if known]
            raise InvalidInputError(
                f"--option {pair}: write a metric, a dot, one of its options, an equals sign and a "
                "value, such as amber.nouns=rules; "
                + (choose_from(key, names) if names else choose_from(metric, cli.entries()))
            )
        option = known.get(flag)
        values = values or (option.choices if option is not None else ())
        if values and value not in values:
            raise InvalidInputError(f"--option {pair}: {choose_from(value, values)}")
        name = cli.VARIANT if option is None else option.name
        found.setdefault(metric, {})[name] = value if option is None else option_text(option, value)
    return found


def _print_progress(typed: tuple[str, ...], done: ScoredRun | LeftOut) -> None:
    """Print one line on standard error for each archive."""
    if isinstance(done, sdk.ScoredRun):
        items = done.report.coverage.items
        # Names of files may hold characters that a terminal obeys; named() escapes them.
        what = named([f"{done.model}, {done.name}"])
        click.echo(f"scored {what}: {items:,} items", err=True)
    else:
        click.echo(f"not scored {named([done.archive])}: {in_flags(done.reason, typed)}", err=True)


_archive_app = command_group(
    "archive", "Explain files that other tools wrote.", "hallujudge archive inspect logs"
)


@_archive_app.command(epilog=examples("hallujudge archive inspect logs"))
def inspect(
    context: click.Context,
    paths: Annotated[
        list[str],
        argument(metavar="PATH", help="Files, folders, patterns or URLs; - for stdin."),
    ],
    format: Annotated[  # the option's name
        str, output_option("--format", "-f", metavar="NAME", help="Format: table or json.")
    ] = "table",
) -> ExitCode:
    """Print what each file is and why, what it lacks, and the command that scores it."""
    check_formats((format,), LISTING_FORMATS)
    summaries = [
        replace(summary, next_step=in_flags(summary.next_step, context.obj))
        for summary in archives.inspect_archives(paths)
    ]
    if format == "json":
        click.echo(json.dumps([asdict(summary) for summary in summaries], indent=2))
    else:
        click.echo("\n\n".join("\n".join(_summary_lines(summary)) for summary in summaries))
        if len(summaries) > 1:
            click.echo(f"\n{_total_line(summaries)}")
    # One unreadable file among others is reported, and is not a failure.
    readable = any(not summary.problem for summary in summaries)
    return ExitCode.OK if readable else ExitCode.FAILED


def _total_line(summaries: Sequence[ArchiveSummary]) -> str:
    scored = sum(bool(s.command) and s.role == "responses" for s in summaries)
    failed = sum(bool(s.problem) for s in summaries)
    return f"{len(summaries)} files, {scored} with responses to score, {failed} can't be read"


def _summary_lines(summary: ArchiveSummary) -> Iterator[str]:
    yield summary.path
    for name, text in _summary_rows(summary):
        if text:
            yield f"  {name:<11} {text}"


def _summary_rows(summary: ArchiveSummary) -> Iterator[tuple[str, str]]:
    if summary.problem:
        yield "problem", summary.problem
        return
    yield "layout", _layout(summary)
    yield "model", summary.model
    yield "task", summary.task
    if summary.records:
        yield "records", _records(summary)
        yield "duplicates", _duplicates(summary)
        yield "responses", _responses(summary)
    for note in summary.notes:
        # The path is the heading above these lines.
        yield "note", note.removeprefix(f"{summary.path}: ")
    yield "next step", summary.next_step
    yield "command", summary.command


def _layout(summary: ArchiveSummary) -> str:
    keys = named(summary.why)
    if not summary.layout:
        return f"plain records ({summary.format}) with the keys {keys}"
    return f"{summary.layout} ({summary.format}), by {keys}"


def _records(summary: ArchiveSummary) -> str:
    ids = f"; ids {', '.join(summary.ids)} …" if summary.ids else ""
    without = f"; {summary.without_id:,} without an id" if summary.without_id else ""
    return f"{summary.records:,}{ids}{without}"


def _duplicates(summary: ArchiveSummary) -> str:
    if not summary.duplicate_count:
        return ""
    return f"{summary.duplicate_count:,} ids: {', '.join(summary.duplicates)}"


def _responses(summary: ArchiveSummary) -> str:
    counts = (
        (summary.missing, "missing (unscored, or wrong where the variant says so)"),
        (summary.failures, "failure texts (unscored)"),
        (summary.truncated, "cut off"),
    )
    return ", ".join(f"{count:,} {what}" for count, what in counts if count)


_DEMO = "chair"
_OWN = "benchmark"


@app.command(epilog=examples("hallujudge demo"))
def demo(
    *,
    out: Annotated[
        Path, output_option("--out", "-o", metavar="DIR", help="Folder for captions and report.")
    ] = Path("hallujudge-demo"),
) -> ExitCode:
    """Score 24 example captions, and write the report to look at."""
    example = sdk.write_example(_DEMO, out)
    words = shlex.split(example.command)[1:]
    # The files are named as from inside the folder, where the demo need not be run.
    words = [str(out / word) if _is_path(word) else word for word in words]
    # The demo may be run twice, into a folder that it wrote itself.
    code = cli.executed([*words, "--overwrite"])
    if code not in (ExitCode.OK, ExitCode.UNSCORED):
        return code
    page = (out / "results" / "report.html").resolve()
    click.echo(f"\nOpen in a browser: {page.as_uri()}\n")
    click.echo(_again(out, example.command))
    return ExitCode.OK


@app.command(epilog=examples("hallujudge new benchmark chart-pairs"))
def new(
    metric: Annotated[
        str,
        argument(metavar="METRIC", help="A metric, or benchmark for one of your own."),
    ],
    name: Annotated[str, argument(metavar="[NAME]", help="Name of a benchmark of your own.")] = "",
    *,
    out: Annotated[
        Path | None, output_option("--out", "-o", metavar="DIR", help="Folder for the files.")
    ] = None,
) -> ExitCode:
    """An example archive of a metric, or your own benchmark."""
    if metric == _OWN:
        return _new_benchmark(name, out)
    if name:
        raise InvalidInputError(f"{name!r} is one word too many; only `new {_OWN} NAME` takes two")
    folder = out or Path(f"{metric}-example")
    found = sdk.write_example(metric, folder)
    click.echo(f"{folder} has {', '.join(found.files)}\n")
    click.echo(_again(folder, found.command))
    return ExitCode.OK


def _new_benchmark(name: str, out: Path | None) -> ExitCode:
    if not name:
        raise InvalidInputError(f"your benchmark needs a name: `new {_OWN} chart-pairs`")
    folder = out or Path(name)
    files = cli.write_benchmark(name, folder)
    click.echo(f"{folder} has {', '.join(files)}\n")
    click.echo(
        "To install, score and test it:\n\n"
        f"    cd {shlex.quote(str(folder))}\n"
        "    pip install -e .\n"
        f"    hallujudge score {name} -r examples/answers.jsonl -o results\n"
        "    python -m pytest tests"
    )
    return ExitCode.OK


def _is_path(word: str) -> bool:
    return word.endswith((".jsonl", ".json")) or word == "results"


def _again(folder: Path, command: str) -> str:
    """Return the command lines that score the files of a folder."""
    return f"To score {folder} yourself:\n\n    cd {shlex.quote(str(folder))}\n    {command}"
