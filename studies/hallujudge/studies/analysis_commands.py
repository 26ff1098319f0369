"""``hallujudge analyze``, and ``hallujudge label scores`` for the sheets that it takes."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, cast

import click

from hallujudge import sdk

# Their modules are imported when a command uses them: help pages wait for none of them.
from hallujudge import studies as room
from hallujudge.sdk import analysis, cli
from hallujudge.sdk.cli.app import (
    ExitCode,
    app,
    examples,
    input_option,
    label_app,
    metric_option,
    output_option,
)
from hallujudge.sdk.cli.output import Format, echo_json, show_page, write_file
from hallujudge.sdk.cli.parameters import Declared, argument, parameter_of
from hallujudge.sdk.cli.run_commands import page_of_run
from hallujudge.sdk.errors import InvalidInputError
from hallujudge.sdk.runs.manifest import ANALYSIS, PAGE

from .analysis_options import OPTIONS

_KINDS = {
    "text": str | None,
    "texts": list[str] | None,
    "number": float | None,
    "count": int | None,
    "file": Path | None,
}
_METAVARS = {"probe": "OBJECT", "counts": "FILE", "sheet": "FILE"}


class _AnalysisOptions(Declared):
    """Makes flags of the options of all families' analyses, which know the defaults."""

    def parameters(self) -> Iterator[inspect.Parameter]:
        """Yield a parameter for each option."""
        for each in chain.from_iterable(OPTIONS.values()):
            flag = metric_option(help=f"{each.meaning}.", metavar=_METAVARS.get(each.name))
            # No default here: an option of another family would count as given, and be refused.
            yield parameter_of(each.name, cast("Any", Annotated)[_KINDS[each.kind], flag], None)

    def build(self, given: Mapping[str, object]) -> dict[str, Any]:
        """Return the options that were given, by name."""
        return {name: value for name, value in given.items() if value is not None}


AnalyzedRuns = Annotated[
    list[Path], argument(metavar="RUN", help="Folders that hallujudge score wrote.")
]


@app.command(epilog=examples("hallujudge analyze results --format latex --table trend"))
def analyze(
    *,
    context: click.Context,
    runs: AnalyzedRuns,
    name: Annotated[
        list[str] | None,
        input_option(help="Name of a run, or model=llava,prompt=2; one for each."),
    ] = None,
    options: Annotated[dict[str, Any], _AnalysisOptions()],
    table: Annotated[
        list[str] | None, output_option(metavar="NAME", help="Table to show; repeatable.")
    ] = None,
    out: Annotated[
        Path | None,
        output_option("--out", "-o", metavar="DIR", help="Folder for all tables in all formats."),
    ] = None,
    html: Annotated[
        bool, output_option("--html", help="Also report.html of one run, with its analyses.")
    ] = False,
    output_format: Format = "table",
) -> ExitCode:
    """The papers' tables and figures from finished runs."""
    if html and len(runs) > 1:
        raise InvalidInputError("--html is for one run; give --out DIR for a page of several runs")
    found = analysis.analyze(*runs, names=tuple(name or ()), options=options)
    shown = found.only(table) if table else found
    # In CSV and LaTeX nothing would part a second table from the first.
    if output_format in ("csv", "latex") and len(shown.page().grids) > 1:
        names = ", ".join(each.name for each in shown.tables if each.rows)
        raise InvalidInputError(
            f"--format {output_format} prints one table; add --table with one of {names}, or "
            "--out DIR for all"
        )
    if len(runs) == 1:
        # Kept with the run: report.html shows all of them from now on, whatever --table is.
        write_file(runs[0] / ANALYSIS, found.to_text())
    if out is not None:
        _write_all(found, out)
    if html:
        write_file(runs[0] / PAGE, page_of_run(sdk.read_run(runs[0])))
    _print_analysis(shown, output_format)
    for note in found.notes:
        click.echo(f"note: {cli.in_flags(note, context.obj)}", err=True)
    return ExitCode.OK


def _print_analysis(shown: analysis.Analysis, output_format: str) -> None:
    if output_format == "json":
        echo_json(shown.to_text())
    elif shown.page().grids:
        # Notes go to the standard error, so that a table in a file has none.
        show_page(replace(shown.page(), notes=()), output_format)


def _write_all(found: analysis.Analysis, out: Path) -> None:
    for path, text in found.files().items():
        write_file(out / path, text)
    click.echo(f"written to {out}", err=True)


@label_app.command(epilog=examples("hallujudge label scores results --sheet scores.csv"))
def scores(
    runs: Annotated[list[Path], argument(metavar="RUN", help="Folders of runs of tri-he.")],
    sheet: Annotated[Path, output_option(metavar="FILE", help="CSV file to fill in with scores.")],
    images: Annotated[
        # 20 images, as in section 5.3 of the Tri-HE paper.
        int, input_option("-n", "--images", metavar="N", help="Images to draw.")
    ] = 20,
    seed: Annotated[int, input_option(help="Seed of the random numbers.")] = 0,
) -> ExitCode:
    """Write a sheet on which people score responses from 1 to 5.

    The responses of all runs are mixed, without the names of their models. The guideline for
    annotators is printed. hallujudge analyze --sheet takes the filled sheet: correlation with the
    judges' rates, and the annotators' agreement.
    """
    write_file(sheet, room.score_sheet(*runs, images=images, seed=seed))
    click.echo(room.GUIDELINE, nl=False)
    click.echo(f"written to {sheet}", err=True)
    return ExitCode.OK
