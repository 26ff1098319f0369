"""``hallujudge metrics``, ``doctor`` and ``config``: what metrics declare and what is set up."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import click
from msgspec import structs

from hallujudge.metrics.families import benchmark_named, broken_benchmarks, metric_names
from hallujudge.metrics.framework.signature import SIGNATURE_FIELDS

from .. import cli
from .app import (
    ExitCode,
    app,
    command_group,
    config_app,
    examples,
    judge_option,
    output_option,
    server_option,
)
from .options import LlmConstraint, LlmDialect, LlmModel, LlmUrl, ServerOptions, llm_options
from .output import LISTING_FORMATS, check_formats, echo_json, in_flags
from .parameters import argument

if TYPE_CHECKING:
    from hallujudge.judge_service.engine.registry import MetricEntry

    from .installation_checks import Finding


# Pages of metrics are read in terminals of any width, and in files.
_WIDTH = 80

metrics_app = command_group(
    "metrics",
    "Metrics, their scores and options, and papers to cite.",
    "hallujudge metrics list",
)

ListingFormat = Annotated[str, output_option(help="Format: table or json.")]


@metrics_app.command("list", epilog=examples("hallujudge metrics list"))
def list_metrics(format: ListingFormat = "table") -> ExitCode:  # the option's name
    """Print every metric on one line."""
    check_formats((format,), LISTING_FORMATS)
    if format == "json":
        echo_json(_json([_declared(cli.metric_entry(name)) for name in metric_names()]))
    else:
        metrics = map(cli.known_metric, metric_names())
        for line in _two_columns((metric.name, metric.summary) for metric in metrics):
            click.echo(line)
    # A benchmark that can't be loaded is missing above, which nothing else would say.
    for why in broken_benchmarks().values():
        click.echo(f"note: {why}", err=True)
    return ExitCode.OK


@metrics_app.command("show", epilog=examples("hallujudge metrics show chair"))
def show_metric(
    name: Annotated[str, argument(help="Name of the metric.")],
    format: ListingFormat = "table",  # the option's name
) -> ExitCode:
    """Print a metric's papers, variants, options, scores, statistics and signature fields."""
    check_formats((format,), LISTING_FORMATS)
    entry = cli.metric_entry(name)
    if format == "json":
        echo_json(_json(_declared(entry)))
    else:
        click.echo("\n".join(_metric_page(entry)))
    return ExitCode.OK


@metrics_app.command("cite", epilog=examples("hallujudge metrics cite chair"))
def cite_metrics(
    names: Annotated[
        list[str] | None, argument(metavar="[NAME]...", help="Names of metrics; all if none.")
    ] = None,
) -> ExitCode:
    """Print BibTeX of the papers that define metrics, each paper once."""
    metrics = [cli.known_metric(name) for name in names or metric_names()]
    for name in [metric.name for metric in metrics if not metric.papers]:
        file = f"{name.replace('-', '_')}.toml"
        click.echo(f"note: {name} has no paper; write {file} beside its module", err=True)
    papers = [paper.bibtex for metric in metrics for paper in metric.papers]
    # Several metrics may be of one paper.
    if papers:
        click.echo("\n\n".join(dict.fromkeys(papers)))
    return ExitCode.OK


def _declared(entry: MetricEntry) -> dict[str, object]:
    metric = entry.metric
    printed = cli.printed_names(metric)
    return {
        "name": metric.name,
        "summary": metric.summary,
        "unit": metric.unit,
        "papers": [structs.asdict(paper) for paper in metric.papers],
        "variants": [asdict(variant) for variant in metric.variants],
        "options": _rows(entry.options, "name", "default", "choices", meaning="sentence"),
        "scores": [
            {**row, "printed": printed.get(str(row["name"]), "")}
            for row in _rows(metric.score_definitions, "name", "meaning", "unit", "direction")
        ],
        "ranked_by": metric.ranked_by,
        "ranking_source": metric.ranking_source,
        "statistics": _rows(metric.columns, "name", "meaning"),
        "signature": {name: SIGNATURE_FIELDS[name] for name in metric.signature_names()},
        "answers": dict(_names(metric.name)[1]),
        "published": [asdict(row) for row in cli.published_rows(metric)],
    }


def _rows(values: Iterable[object], *names: str, **others: str) -> list[dict[str, object]]:
    """Return fields of values by name, some of them by another name than theirs."""
    shown = dict(zip(names, names, strict=True)) | others
    return [{name: getattr(value, own) for name, own in shown.items()} for value in values]


def _names(metric: str) -> tuple[str, Mapping[str, str]]:
    """Return the field that names answers of a bundle, such as an operator, and its values."""
    declared = benchmark_named(metric)
    return ("", {}) if declared is None else (" and ".join(declared.bundle.name), declared.names)


def _json(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def _metric_page(entry: MetricEntry) -> Iterator[str]:
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
    printed = cli.printed_names(metric)
    sections: dict[str, Iterable[tuple[str, str]]] = {
        "variants": ((variant.name, variant.meaning) for variant in metric.variants),
        "options": options,
        "scores": ((score.name, score.sentence) for score in metric.score_definitions),
        **({"their names in the paper": printed.items()} if printed else {}),
        "models are ranked by": (
            (", else ".join(metric.ranked_by), metric.ranking_source or "No source is declared."),
        ),
        f"statistics, over {metric.unit}": (
            (column.name, column.meaning) for column in metric.columns
        ),
        "fields of its signatures; those that a run does not use are absent": (
            (name, SIGNATURE_FIELDS[name]) for name in metric.signature_names()
        ),
    }
    field, names = _names(metric.name)
    if names:
        sections[f"values of {field}"] = names.items()
    if published := cli.published_rows(metric):
        sections["published rows, for hallujudge report --baseline published:ROW"] = (
            (row.name, f"{row.model}; {row.source}") for row in published
        )
    for title, rows in sections.items():
        yield ""
        yield title
        yield from _two_columns(rows, indent="  ")


def _two_columns(rows: Iterable[tuple[str, str]], indent: str = "") -> Iterator[str]:
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


_CONFIG_FORMATS = ("text", "toml")


@config_app.command(epilog=examples("hallujudge config show --format toml"))
def show(
    config: Annotated[str | None, server_option(help="TOML file of settings.")] = None,
    format: Annotated[
        str, output_option("--format", "-f", metavar="NAME", help="Output format: text or toml.")
    ] = "text",
) -> None:
    """Print every setting with its source."""
    check_formats((format,), _CONFIG_FORMATS)
    resolved = cli.load_settings(file=config)
    if format == "toml":
        click.echo(cli.settings_toml(resolved.sources), nl=False)
        return
    for setting in resolved.sources:
        click.echo(f"{setting.name} = {setting.value!r}  # {setting.source}: {setting.help}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedServer(ServerOptions):
    """A server that is checked too."""

    server: Annotated[
        str | None, server_option(metavar="HOST:PORT", help="Server to check too.")
    ] = None
    """Host and port."""


@app.command(epilog=examples("hallujudge doctor --server localhost:50051"))
def doctor(
    *,
    at: CheckedServer,
    llm_url: LlmUrl = None,
    llm_model: LlmModel = None,
    llm_dialect: LlmDialect = None,
    llm_constraint: LlmConstraint = None,
    vllm: Annotated[
        str | None,
        judge_option(metavar="MODEL", help="Print only which GPUs hold this model with vLLM."),
    ] = None,
) -> ExitCode:
    """Check this installation, and a server if one is named."""
    if vllm is not None:
        return _size_vllm(vllm)
    judges = llm_options(llm_url, llm_model, llm_dialect=llm_dialect, llm_constraint=llm_constraint)
    return _show_findings(cli.installation_findings(at.server, judges, at.connection()))


def _show_findings(findings: Iterable[Finding]) -> ExitCode:
    """Print findings and return the command's exit code."""
    findings = list(findings)
    for finding in findings:
        mark = "ok" if finding.ok else ("FAILED" if finding.needed else "absent")
        click.echo(f"{mark:>6}  {finding.name}: {in_flags(finding.text)}")
    failed = [finding.name for finding in findings if finding.needed and not finding.ok]
    if failed:
        click.echo(f"failed: {', '.join(failed)}")
    return ExitCode.FAILED if failed else ExitCode.OK


def _size_vllm(model: str) -> ExitCode:
    """Print which GPUs hold a model, those of this machine included."""
    shape = cli.model_shape(model)
    code = _show_findings(cli.vllm_findings(shape))
    table = cli.sizing_table(shape)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    click.echo()
    for row in table:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())
    click.echo(
        "\nfits: room for 64 calls of 1,024 tokens at once; tight: for fewer. Estimates: 92 % of "
        "the\nmemory, 4 GiB of each GPU for vLLM itself. Parts of a model that see images are not "
        "counted."
    )
    return code
