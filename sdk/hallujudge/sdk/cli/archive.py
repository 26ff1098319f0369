"""``hallujudge archive inspect``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InvalidInputError
from .app import ExitCode, app
from .panels import examples, output_option
from .strict import StrictTyper
from .wording import in_flags

if TYPE_CHECKING:
    from ..archives import ArchiveSummary

__all__: list[str] = []

FORMATS = ("table", "json")

_archive_app = StrictTyper(
    help="Explain files that other tools wrote.",
    no_args_is_help=True,
    epilog=examples("hallujudge archive inspect logs"),
)
app.add_typer(_archive_app, name="archive")


@_archive_app.callback()
def _archive() -> None:
    """Explain files that other tools wrote."""


@_archive_app.command(epilog=examples("hallujudge archive inspect logs"))
def inspect(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATH", help="Files, folders, patterns or URLs; - for stdin."),
    ],
    format: Annotated[  # the option's name
        str, output_option("--format", "-f", metavar="NAME", help="Format: table or json.")
    ] = "table",
) -> ExitCode:
    """Print what each file is and why, what it lacks, and the command that scores it."""
    from ..archives import inspect_archives

    if format not in FORMATS:
        raise InvalidInputError(f"--format {format!r}: choose from {', '.join(FORMATS)}")
    summaries = [
        replace(summary, next_step=in_flags(summary.next_step))
        for summary in inspect_archives(paths)
    ]
    if format == "json":
        typer.echo(json.dumps([asdict(summary) for summary in summaries], indent=2))
    else:
        typer.echo("\n\n".join("\n".join(_lines(summary)) for summary in summaries))
        if len(summaries) > 1:
            typer.echo(f"\n{_total(summaries)}")
    readable = any(not summary.problem for summary in summaries)
    return ExitCode.OK if readable else ExitCode.FAILED


def _total(summaries: Sequence[ArchiveSummary]) -> str:
    scored = sum(bool(s.command) and s.role == "responses" for s in summaries)
    failed = sum(bool(s.problem) for s in summaries)
    return f"{len(summaries)} files, {scored} with responses to score, {failed} can't be read"


def _lines(summary: ArchiveSummary) -> Iterator[str]:
    yield summary.path
    for name, text in _rows(summary):
        if text:
            yield f"  {name:<11} {text}"


def _rows(summary: ArchiveSummary) -> Iterator[tuple[str, str]]:
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
        yield "note", note.removeprefix(f"{summary.path}: ")
    yield "next step", summary.next_step
    yield "command", summary.command


def _layout(summary: ArchiveSummary) -> str:
    from ..archives.json_files import named

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
        (summary.missing, "missing (unscored)"),
        (summary.failures, "failure texts (unscored)"),
        (summary.truncated, "cut off"),
    )
    return ", ".join(f"{count:,} {what}" for count, what in counts if count)
