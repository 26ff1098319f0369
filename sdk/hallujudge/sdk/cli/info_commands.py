"""``hallujudge doctor`` and ``config``: what is set up, and whether it works."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import click

from hallujudge.sdk import cli

from .app import (
    ExitCode,
    app,
    config_app,
    examples,
    judge_option,
    output_option,
    server_option,
)
from .declared_options import grouped
from .options import LlmConstraint, LlmDialect, LlmModel, LlmUrl, ServerOptions, llm_options
from .output import in_flags

if TYPE_CHECKING:
    from .installation_checks import Finding


class ConfigFormat(enum.StrEnum):
    """Output formats of ``config show``."""

    TEXT = "text"
    TOML = "toml"


@config_app.command(epilog=examples("hallujudge config show --format toml"))
def show(
    config: Annotated[str | None, server_option(help="TOML file of settings.")] = None,
    format: Annotated[
        ConfigFormat, output_option("--format", "-f", help="Output format: text or toml.")
    ] = ConfigFormat.TEXT,
) -> None:
    """Print every setting with its source."""
    resolved = cli.load_settings(file=config)
    if format is ConfigFormat.TOML:
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
@grouped
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
