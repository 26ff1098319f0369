"""``hallujudge metrics list`` and ``hallujudge metrics show``."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Annotated

import typer

from hallujudge.judge_service.engine.registry import MetricEntry, metric_entry, metric_names
from hallujudge.metrics.framework.published_figures import published_rows

from ..errors import InvalidInputError
from .app import ExitCode, app
from .panels import examples, output_option
from .strict import StrictTyper

__all__ = ["metrics_app"]

FORMATS = ("table", "json")
_WIDTH = 80

metrics_app = StrictTyper(
    help="List metrics, and show their scores, variants and options.",
    no_args_is_help=True,
    epilog=examples("hallujudge metrics list"),
)
app.add_typer(metrics_app, name="metrics")

Format = Annotated[str, output_option("--format", help="Format: table or json.")]


@metrics_app.command("list", epilog=examples("hallujudge metrics list"))
def list_command(format: Format = "table") -> ExitCode:  # the option's name
    """Print every metric on one line."""
    _check(format)
    entries = [metric_entry(name) for name in metric_names()]
    if format == "json":
        typer.echo(_json([_declared(entry) for entry in entries]))
    else:
        for line in _rows((entry.name, entry.metric.summary) for entry in entries):
            typer.echo(line)
    return ExitCode.OK


@metrics_app.command("show", epilog=examples("hallujudge metrics show chair"))
def show_command(
    name: Annotated[str, typer.Argument(help="Name of the metric.")],
    format: Format = "table",  # the option's name
) -> ExitCode:
    """Print a metric's papers, variants, options, scores and statistics."""
    _check(format)
    entry = metric_entry(name)
    if format == "json":
        typer.echo(_json(_declared(entry)))
    else:
        typer.echo("\n".join(_page(entry)))
    return ExitCode.OK


def _check(name: str) -> None:
    if name not in FORMATS:
        raise InvalidInputError(f"--format {name!r}: choose from {', '.join(FORMATS)}")


def _declared(entry: MetricEntry) -> dict[str, object]:
    metric = entry.metric
    return {
        "name": metric.name,
        "summary": metric.summary,
        "unit": metric.unit,
        "papers": [asdict(paper) for paper in metric.papers],
        "variants": [asdict(variant) for variant in metric.variants],
        "options": [
            {
                "name": option.name,
                "default": option.default,
                "choices": option.choices,
                "meaning": option.sentence,
            }
            for option in entry.options
        ],
        "scores": [
            {
                "name": score.name,
                "meaning": score.meaning,
                "unit": score.unit,
                "direction": score.direction,
            }
            for score in metric.score_definitions
        ],
        "statistics": [
            {"name": column.name, "meaning": column.meaning} for column in metric.columns
        ],
        "published": [asdict(row) for row in published_rows(metric)],
    }


def _json(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False)


def _page(entry: MetricEntry) -> Iterator[str]:
    metric = entry.metric
    yield f"{metric.name}: {metric.summary}"
    for paper in metric.papers:
        yield textwrap.indent(textwrap.fill(paper.citation, _WIDTH - 2), "  ")
    options = (
        (
            option.name,
            f"{option.sentence} Default: {option.default or 'none'}."
            + (f" Choices: {', '.join(option.choices)}." if option.choices else ""),
        )
        for option in entry.options
    )
    sections: dict[str, Iterable[tuple[str, str]]] = {
        "variants": ((variant.name, variant.meaning) for variant in metric.variants),
        "options": options,
        "scores": ((score.name, score.sentence) for score in metric.score_definitions),
        f"statistics, over {metric.unit}": (
            (column.name, column.meaning) for column in metric.columns
        ),
    }
    if published := published_rows(metric):
        sections["published rows, for hallujudge report --baseline published:ROW"] = (
            (row.name, f"{row.model}; {row.source}") for row in published
        )
    for title, rows in sections.items():
        yield ""
        yield title
        yield from _rows(rows, indent="  ")


def _rows(rows: Iterable[tuple[str, str]], indent: str = "") -> Iterator[str]:
    """Return names and texts in two columns; long texts wrap within their column."""
    table = list(rows)
    wide = len(indent) + max(len(name) for name, _ in table) + 2
    # A long name leaves too little room for its text, which then starts on the next line.
    column = wide if wide <= _WIDTH // 2 else len(indent) + 4
    for name, text in table:
        label = f"{indent}{name}"
        if wide <= _WIDTH // 2:
            first = label.ljust(column)
        else:
            yield label
            first = " " * column
        yield from textwrap.wrap(text, _WIDTH, initial_indent=first, subsequent_indent=" " * column)
