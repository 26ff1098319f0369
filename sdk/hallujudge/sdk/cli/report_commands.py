"""Commands on complete runs: ``report``, ``view``, ``merge`` and ``rescore``."""

from __future__ import annotations

import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
from msgspec import structs

from hallujudge import sdk
from hallujudge.sdk import cli

from .. import report as rendering
from ..errors import InvalidInputError
from ..report import page as pages
from ..runs.manifest import PAGE
from ..trackers import tracker_named
from .app import ExitCode, app, examples, metric_option, output_option, server_option
from .comparison_commands import Allow
from .output import (
    AllRows,
    NewFolder,
    Written,
    check_formats,
    echo_json,
    show_new_run,
    with_flags,
    write_file,
)
from .parameters import argument
from .run_options import Overwrite

if TYPE_CHECKING:
    from ..report.page import Images
    from ..runs import StoredRun

_REPORT_FORMATS = ("table", "json", "markdown", "csv", "latex", "html", "parquet")
_PAGE_OF_TWO = "comparison.html"

ReportedRuns = Annotated[
    list[Path], argument(metavar="RUN", help="Folder that hallujudge score wrote, or two.")
]
ReportFormats = Annotated[
    list[str] | None,
    output_option("--format", "-f", metavar="NAME", help=f"{', '.join(_REPORT_FORMATS)}."),
]
PageFile = Annotated[
    Path | None,
    output_option("--out", "-o", metavar="FILE", help="HTML file; else report.html in RUN."),
]
Title = Annotated[str, output_option(metavar="TEXT", help="Title of the page.")]
Baseline = Annotated[
    str | None, output_option(metavar="RUN", help="Run to compare with, or published:ROW.")
]
Pictures = Annotated[
    str, output_option(metavar="SOURCE", help="Folder, or URL with {id} or {group}.")
]
Trackers = Annotated[
    list[str] | None,
    output_option(metavar="PLACE", help="mlflow, wandb, otel, every-eval-ever and others."),
]
Model = Annotated[str, output_option(metavar="ORG/NAME", help="The evaluated model, for --to.")]
Dataset = Annotated[
    str, output_option(metavar="ORG/NAME", help="Its benchmark's dataset, for --to.")
]
Embed = Annotated[bool, output_option("--embed-images", help="Thumbnails inside the page.")]


@app.command(epilog=examples("hallujudge report results --format html --images val2014"))
def report(
    runs: ReportedRuns,
    format: ReportFormats = None,  # the option's name
    out: PageFile = None,
    title: Title = "",
    baseline: Baseline = None,
    images: Pictures = "",
    embed_images: Embed = False,
    all_rows: AllRows = False,
    allow: Allow = None,
    to: Trackers = None,
    model: Model = "",
    dataset: Dataset = "",
) -> ExitCode:
    """Reports of a run in any format, without scoring again.

    Two runs make one page: their differences, and their items side by side.
    """
    if to and len(runs) > 1:
        raise InvalidInputError("--to takes one run; leave out the other")
    if (model or dataset) and not to:
        raise InvalidInputError("--model and --dataset are for --to; leave them out, or add --to")
    # A wrong tracker is reported now, not after pages were made and written.
    for tracker in to or ():
        tracker_named(tracker, model=model, dataset=dataset)
    names = _report_formats(format, runs)
    options = {
        "--out": out, "--title": title, "--baseline": baseline, "--images": images,
        "--embed-images": embed_images,
    }  # fmt: skip
    _check_page(names, len(runs), [option for option, value in options.items() if value])
    stored = [sdk.read_run(run) for run in runs]
    page = out or (runs[0] / PAGE if len(runs) == 1 else Path(_PAGE_OF_TWO))
    for name in names:
        if name == "html":
            pictures = _images(images, page.parent, stored[0], embed=embed_images)
            if len(stored) == 1:
                write_file(page, page_of_run(stored[0], title, baseline, pictures, allow or ()))
            else:
                write_file(page, cli.page_of_two(*runs, images=pictures, allow=tuple(allow or ())))
            click.echo(f"written to {page}", err=True)
        elif name == "parquet":
            click.echo(f"written to {stored[0].items_to_parquet()}", err=True)
        else:
            _print_run(stored[0], name, all_rows=all_rows)
    for tracker in to or ():
        stored[0].log_to(tracker, model=model, dataset=dataset)
        click.echo(f"logged to {tracker}", err=True)
    return ExitCode.OK


def _report_formats(given: list[str] | None, runs: list[Path]) -> list[str]:
    if len(runs) > 2:
        raise InvalidInputError(
            f"{len(runs)} runs: a page shows one or two; hallujudge compare and hallujudge "
            "leaderboard take more"
        )
    default = ["table"] if len(runs) == 1 else ["html"]
    names = [name.strip() for part in given or default for name in part.split(",")]
    check_formats(names, _REPORT_FORMATS)
    if len(runs) == 2 and names != ["html"]:
        raise InvalidInputError(
            "two runs have only an HTML page here; hallujudge compare prints their differences in "
            "other formats"
        )
    return names


def _check_page(names: list[str], runs: int, options: list[str]) -> None:
    """Refuse options that only a page has, or only the page of one run."""
    if options and "html" not in names:
        raise InvalidInputError(f"{options[0]} is for the page only; add --format html")
    if runs == 2 and (alone := [each for each in options if each in ("--title", "--baseline")]):
        raise InvalidInputError(f"{alone[0]} is for the page of one run; leave it out, or a run")


def _print_run(run: StoredRun, name: str, *, all_rows: bool) -> None:
    shown = with_flags(run.report)
    # Programs read it, which know options by their names in Python.
    if name == "json":
        echo_json(run.report.to_text())
        return
    if name == "table":
        text = rendering.render_table(shown, calibration=run.calibration(), all_rows=all_rows)
    elif name == "markdown":
        text = rendering.render_markdown(shown, run.calibration())
    else:
        text = rendering.PRINTED[name](shown)
    click.echo(text, nl=False)


def _images(given: str, folder: Path, run: StoredRun, *, embed: bool) -> Images:
    """Return the pictures that are given, or those that the run's judge was shown."""
    if embed and not given:
        raise InvalidInputError("--embed-images needs the folder of the pictures: --images FOLDER")
    if given:
        return pages.Images.of(given, page=folder, embed=embed)
    return cli.pictures_of(run.manifest, folder)


def page_of_run(
    run: StoredRun,
    title: str = "",
    baseline: str | None = None,
    images: Images | None = None,
    allow: Sequence[str] = (),
) -> str:
    """Return the page of a run, with the analyses that are in its folder."""
    analysis = cli.stored_analysis(run.folder)
    analyses = tuple(cli.grid_sections(analysis.page().grids)) if analysis else ()
    about = structs.replace(run.about(), date=run.date(), analyses=analyses)
    if title:
        about = structs.replace(about, title=title)
    if baseline is not None:
        about = structs.replace(about, baseline=cli.baseline_of(baseline, run.report, allow))
    return run.page(about, images)


@app.command(epilog=examples("hallujudge view runs"))
def view(
    folder: Annotated[Path, argument(metavar="FOLDER", help="Folder of runs.")],
    port: Annotated[int, server_option(min=0, max=65535, help="Port; 0 for a free one.")] = 0,
    browser: Annotated[
        bool, server_option("--browser/--no-browser", help="Open the overview in a browser.")
    ] = True,
) -> ExitCode:
    """Pages of all runs below a folder, on this machine only."""
    viewer = cli.Viewer(folder, port)
    click.echo(f"{viewer.address} shows the runs of {folder}; Ctrl-C ends it")
    if browser:
        webbrowser.open(viewer.address)
    try:
        viewer.serve()
    # Ctrl-C is how a user ends it, and no error.
    except KeyboardInterrupt:
        viewer.stop()
    return ExitCode.OK


StoredRunFolder = Annotated[
    Path, argument(metavar="RUN", help="Folder that hallujudge score wrote.")
]
MergedRuns = Annotated[
    list[Path], argument(metavar="RUN", help="Folders that hallujudge score wrote.")
]
WithPage = Annotated[bool, output_option("--html", help="Also report.html.")]


@app.command(epilog=examples("hallujudge merge shard-1 shard-2 --out results"))
def merge(
    runs: MergedRuns, out: NewFolder, html: WithPage = False, overwrite: Overwrite = False
) -> ExitCode:
    """Runs over different items as one run."""
    before = Written.of(out)
    return show_new_run(sdk.merge_runs(runs, out, html=html, overwrite=overwrite), out, before)


@app.command(epilog=examples("hallujudge rescore results --variant corrected --out corrected"))
def rescore(
    run: StoredRunFolder,
    variant: Annotated[str, metric_option(help="Variant to score by.")],
    out: NewFolder,
    html: WithPage = False,
    overwrite: Overwrite = False,
) -> ExitCode:
    """Scores of a run by another variant, with its verdicts."""
    before = Written.of(out)
    made = sdk.rescore_run(run, out, variant=variant, html=html, overwrite=overwrite)
    return show_new_run(made, out, before)
