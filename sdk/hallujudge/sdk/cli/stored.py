"""``hallujudge merge`` and ``hallujudge rescore``: new runs from complete ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hallujudge.metrics import Report

from .app import ExitCode, app
from .panels import examples, metric_option, output_option

__all__: list[str] = []

Run = Annotated[Path, typer.Argument(metavar="RUN", help="Folder that hallujudge score wrote.")]
Runs = Annotated[
    list[Path], typer.Argument(metavar="RUN", help="Folders that hallujudge score wrote.")
]
Out = Annotated[
    Path,
    output_option("--out", "-o", metavar="DIR", help="Folder for the results.", show_default=False),
]
Html = Annotated[bool, output_option("--html", help="Also report.html.")]


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
