"""``hallujudge report``, ``hallujudge merge`` and ``hallujudge rescore``: work on complete runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hallujudge.metrics import Report

from ..errors import InvalidInputError
from ..runs.names import PAGE
from .app import ExitCode, app
from .files import write_file
from .panels import examples, metric_option, output_option

__all__: list[str] = []

_FORMATS = ("table", "json", "markdown", "csv", "latex", "html", "parquet")

Run = Annotated[Path, typer.Argument(metavar="RUN", help="Folder that hallujudge score wrote.")]
Runs = Annotated[
    list[Path], typer.Argument(metavar="RUN...", help="Folders that hallujudge score wrote.")
]
Out = Annotated[
    Path,
    output_option("--out", "-o", metavar="DIR", help="Folder for the results.", show_default=False),
]
Html = Annotated[bool, output_option("--html", help="Also report.html.")]
Format = Annotated[
    list[str] | None,
    output_option("--format", "-f", metavar="NAME", help=f"{', '.join(_FORMATS)}; repeatable."),
]


@app.command(epilog=examples("hallujudge report results --format html,markdown"))
def report(run: Run, format: Format = None) -> ExitCode:  # the option's name
    """Reports of a run in any format, without scoring again."""
    from ..report import PRINTED, render_table
    from ..runs import read_run

    names = [name.strip() for part in format or ["table"] for name in part.split(",")]
    if unknown := [name for name in names if name not in _FORMATS]:
        raise InvalidInputError(f"--format {unknown[0]!r}: choose from {', '.join(_FORMATS)}")
    stored = read_run(run)
    for name in names:
        if name == "html":
            write_file(run / PAGE, stored.page())
            typer.echo(f"written to {run / PAGE}", err=True)
        elif name == "parquet":
            typer.echo(f"written to {stored.items_to_parquet()}", err=True)
        else:
            render = PRINTED.get(name, render_table)
            typer.echo(render(stored.report), nl=False)
    return ExitCode.OK


@app.command(epilog=examples("hallujudge merge shard-1 shard-2 --out results"))
def merge(runs: Runs, out: Out, html: Html = False) -> ExitCode:
    """Runs over different items as one run, without scoring again."""
    from ..runs import merge_runs

    return _shown(merge_runs(runs, out, html=html), out)


@app.command(epilog=examples("hallujudge rescore results --variant corrected --out corrected"))
def rescore(
    run: Run,
    variant: Annotated[str, metric_option("--variant", help="Variant to score by.")],
    out: Out,
    html: Html = False,
) -> ExitCode:
    """Scores of a run by another variant, with the verdicts that the run has."""
    from ..rescoring import rescore_run

    return _shown(rescore_run(run, out, variant=variant, html=html), out)


def _shown(made: Report, out: Path) -> ExitCode:
    from ..report import render_table

    typer.echo(render_table(made), nl=False)
    typer.echo(f"written to {out}")
    return ExitCode.UNSCORED if made.coverage.unscored else ExitCode.OK
