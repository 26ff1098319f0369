"""``hallujudge label``: what to label next, and files of labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InvalidInputError
from .app import ExitCode, label_app
from .files import write_file
from .panels import examples, input_option, output_option

if TYPE_CHECKING:
    from ..labels import LabelPlan
    from ..labels.label_plans import By

__all__: list[str] = []

_RESPONSE_CHARS = 2_000

Run = Annotated[Path, typer.Argument(help="Folder that hallujudge score wrote.")]


@label_app.command(epilog=examples("hallujudge label plan results -n 100"))
def plan(
    run: Run,
    count: Annotated[
        int, input_option("-n", "--count", metavar="N", help="How many more to label.")
    ] = 100,
    by: Annotated[
        str | None,
        input_option("--by", metavar="UNIT", help="What to draw: claim (default) or item."),
    ] = None,
    seed: Annotated[
        int | None, input_option("--seed", help="Seed of the random numbers; 0 if not given.")
    ] = None,
    out: Annotated[
        Path | None,
        output_option("--out", "-o", metavar="FILE", help="Plan; else label-plan.json in RUN."),
    ] = None,
    sheet: Annotated[
        Path | None,
        output_option("--sheet", metavar="FILE", help="CSV file to fill in with labels."),
    ] = None,
) -> ExitCode:
    """Choose what to label next: a random sample by verdict and margin.

    A plan that exists already is extended; what it draws and its seed stay. Labels in RUN show
    where the judge errs, and more of the next ones are drawn there.
    """
    from ..calibration.next_labels import next_plan
    from ..calibration.stored import PLAN

    path = out or run / PLAN
    made = next_plan(run, path, count=count, by=_by(by), seed=seed)
    write_file(path, made.to_text())
    # Both files come before any output: a reader that closes the pipe (head) ends the command.
    if sheet is not None:
        write_file(sheet, _sheet(made, run))
    _show(made)
    if sheet is not None:
        typer.echo(f"written to {sheet}", err=True)
    typer.echo(f"written to {path}", err=True)
    return ExitCode.OK


@label_app.command("import", epilog=examples("hallujudge label import results labels.jsonl"))
def import_labels(
    run: Run,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="Files of labels: JSON lines or CSV.")
    ],
) -> ExitCode:
    """Add files of labels to labels.jsonl in a run's folder.

    Read are the HTML page's export, tables with the columns item, claim and label, and responses
    whose words are marked. A later label of one annotator replaces an earlier one. Rows without a
    label are left out, so that a sheet may be imported again and again while it is filled in.
    """
    from ..calibration.next_labels import add_labels

    added = add_labels(run, files)
    typer.echo(
        f"{added.labels:,} labels of {added.claims:,} claims; items labelled in full: "
        f"{added.items:,}; of claims or items that the run does not have: {added.unknown:,}; "
        f"without a majority: {added.unsure:,}"
    )
    if added.blank:
        typer.echo(f"{added.blank:,} rows have no label yet")
    if added.note:
        typer.echo(f"note: {added.note}")
    typer.echo(f"written to {added.path}", err=True)
    return ExitCode.OK


def _by(name: str | None) -> By | None:
    if name is None:
        return None
    if name == "claim":
        return "claim"
    if name == "item":
        return "item"
    raise InvalidInputError(f"--by {name!r:.80}: choose claim or item")


def _show(made: LabelPlan) -> None:
    from ..calibration.scores import FEW_LABELS

    typer.echo(f"{len(made.units):,} {made.by}s to label, seed {made.seed}")
    for stratum in made.strata:
        margin = ""
        if stratum.low is not None:
            end = "" if stratum.high is None else f" to below {stratum.high:.4g}"
            margin = f", margin from {stratum.low:.4g}{end}"
        typer.echo(f"  {stratum.verdict}{margin}: {stratum.drawn:,} of {stratum.units:,}")
    typer.echo("expected width of the interval of the share that is hallucinated, for this run:")
    for gain in made.gains:
        typer.echo(f"  {gain.labels:,} labels: {gain.width:.3f}")
    if len(made.units) < FEW_LABELS:
        typer.echo(
            f"note: with fewer than {FEW_LABELS} labels calibrate reports the raw score; 100 are "
            "better. Repeat the command to draw more."
        )


def _sheet(made: LabelPlan, run: Path) -> str:
    """Return a sheet to fill in, with what a person needs to see beside each claim."""
    import csv
    import io

    from ..labels.verdicts import read_verdicts
    from ..report.export_formats import csv_cell
    from ..report.report_text import cut
    from ..runs.stored_runs import read_run

    items = {item.id: item for item in read_verdicts(read_run(run))}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("item", "claim", "text", "image", "response", "label", "annotator"))
    for unit in made.units:
        item, claim = items[unit.item], "" if unit.claim is None else unit.claim
        shown = (unit.text, item.cluster, cut(item.response, _RESPONSE_CHARS))
        writer.writerow((csv_cell(unit.item), claim, *map(csv_cell, shown), "", ""))
    return out.getvalue()
