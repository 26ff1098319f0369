"""``hallujudge report``: reports of one run in any format, and the page of two runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InvalidInputError
from ..runs.manifest import PAGE
from .app import ExitCode, app
from .compare import Allow
from .files import write_file
from .panels import examples, output_option

if TYPE_CHECKING:
    from ..report.page import Images
    from ..runs import StoredRun

__all__: list[str] = []

_FORMATS = ("table", "json", "markdown", "csv", "latex", "html", "parquet")
_TWO = "comparison.html"

Runs = Annotated[
    list[Path],
    typer.Argument(metavar="RUN", help="Folder that hallujudge score wrote, or two."),
]
Format = Annotated[
    list[str] | None,
    output_option("--format", "-f", metavar="NAME", help=f"{', '.join(_FORMATS)}."),
]
Out = Annotated[
    Path | None,
    output_option("--out", "-o", metavar="FILE", help="HTML file; else report.html in RUN."),
]
Title = Annotated[str, output_option("--title", metavar="TEXT", help="Title of the page.")]
Baseline = Annotated[
    str | None,
    output_option("--baseline", metavar="RUN", help="Run to compare with, or published:ROW."),
]
Pictures = Annotated[
    str,
    output_option("--images", metavar="SOURCE", help="Folder, or URL with {id} or {group}."),
]
Embed = Annotated[bool, output_option("--embed-images", help="Thumbnails inside the page.")]


@app.command(epilog=examples("hallujudge report results --format html --images val2014"))
def report(
    runs: Runs,
    format: Format = None,  # the option's name
    out: Out = None,
    title: Title = "",
    baseline: Baseline = None,
    images: Pictures = "",
    embed_images: Embed = False,
    allow: Allow = None,
) -> ExitCode:
    """Reports of a run in any format, without scoring again.

    Two runs make one page: their differences, and their items side by side.
    """
    from ..comparison.page import page_of_two
    from ..runs import read_run

    names = _formats(format, runs)
    options = {
        "--out": out, "--title": title, "--baseline": baseline, "--images": images,
        "--embed-images": embed_images,
    }  # fmt: skip
    _check_page(names, len(runs), [option for option, value in options.items() if value])
    stored = [read_run(run) for run in runs]
    page = out or (runs[0] / PAGE if len(runs) == 1 else Path(_TWO))
    for name in names:
        if name == "html":
            pictures = _images(images, page.parent, embed=embed_images)
            if len(stored) == 1:
                write_file(page, _one(stored[0], title, baseline, pictures))
            else:
                write_file(page, page_of_two(*runs, images=pictures, allow=tuple(allow or ())))
            typer.echo(f"written to {page}", err=True)
        elif name == "parquet":
            typer.echo(f"written to {stored[0].items_to_parquet()}", err=True)
        else:
            _print(stored[0], name)
    return ExitCode.OK


def _formats(given: list[str] | None, runs: list[Path]) -> list[str]:
    if len(runs) > 2:
        raise InvalidInputError(
            f"{len(runs)} runs: a page shows one or two; hallujudge compare and hallujudge "
            "leaderboard take more"
        )
    default = ["table"] if len(runs) == 1 else ["html"]
    names = [name.strip() for part in given or default for name in part.split(",")]
    if unknown := [name for name in names if name not in _FORMATS]:
        raise InvalidInputError(f"--format {unknown[0]!r}: choose from {', '.join(_FORMATS)}")
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


def _print(run: StoredRun, name: str) -> None:
    from ..report import PRINTED, render_markdown, render_table

    if name == "table":
        text = render_table(run.report, calibration=run.calibration())
    elif name == "markdown":
        text = render_markdown(run.report, run.calibration())
    else:
        text = PRINTED[name](run.report)
    typer.echo(text, nl=False)


def _images(given: str, folder: Path, *, embed: bool) -> Images:
    from ..report.page import Images

    if embed and not given:
        raise InvalidInputError("--embed-images needs the folder of the pictures: --images FOLDER")
    return Images.of(given, page=folder, embed=embed)


def _one(run: StoredRun, title: str, baseline: str | None, images: Images) -> str:
    from ..comparison.baseline import baseline_of

    about = replace(run.about(), date=run.date())
    if title:
        about = replace(about, title=title)
    if baseline is not None:
        about = replace(about, baseline=baseline_of(baseline, run.report.metric))
    return run.page(about, images)
