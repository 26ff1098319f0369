"""Commands on complete runs, and the options of all commands that compare runs.

``hallujudge report``, ``view``, ``merge``, ``rescore``, ``compare`` and ``gate``.
"""

from __future__ import annotations

import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import click
from msgspec import structs

from hallujudge import sdk
from hallujudge.sdk import cli

from .. import comparison
from .. import report as rendering
from ..archives.json_files import amount
from ..errors import HallujudgeError, InvalidInputError
from ..report import page as pages
from ..runs.manifest import PAGE
from ..trackers import tracker_named
from .app import (
    ExitCode,
    app,
    examples,
    input_option,
    metric_option,
    output_option,
    server_option,
    statistics_option,
)
from .options import ModelNames, model_names
from .output import (
    AllRows,
    Format,
    NewFolder,
    Overwrite,
    Written,
    check_formats,
    echo_json,
    show_new_run,
    show_result,
    with_flags,
    write_file,
    write_lines,
)
from .parameters import argument

if TYPE_CHECKING:
    from ..comparison.gates import Decision
    from ..report.page import Images
    from ..runs import StoredRun


_REPORT_FORMATS = ("table", "json", "markdown", "csv", "latex", "html", "parquet")
_PAGE_OF_TWO = "comparison.html"

Allow = Annotated[
    list[str] | None,
    input_option(metavar="FIELD", help="Signature fields that may differ; repeatable."),
]


@app.command(epilog=examples("hallujudge report results --format html --images val2014"))
def report(
    runs: Annotated[
        list[Path], argument(metavar="RUN", help="Folder that hallujudge score wrote, or two.")
    ],
    format: Annotated[
        list[str] | None,
        output_option("--format", "-f", metavar="NAME", help=f"{', '.join(_REPORT_FORMATS)}."),
    ] = None,  # the option's name
    out: Annotated[
        Path | None,
        output_option("--out", "-o", metavar="FILE", help="HTML file; else report.html in RUN."),
    ] = None,
    title: Annotated[str, output_option(metavar="TEXT", help="Title of the page.")] = "",
    baseline: Annotated[
        str | None, output_option(metavar="RUN", help="Run to compare with, or published:ROW.")
    ] = None,
    images: Annotated[
        str, output_option(metavar="SOURCE", help="Folder, or URL with {id} or {group}.")
    ] = "",
    embed_images: Annotated[
        bool, output_option("--embed-images", help="Thumbnails inside the page.")
    ] = False,
    all_rows: AllRows = False,
    allow: Allow = None,
    to: Annotated[
        list[str] | None,
        output_option(metavar="PLACE", help="mlflow, wandb, otel, every-eval-ever and others."),
    ] = None,
    model: Annotated[
        str, output_option(metavar="ORG/NAME", help="The evaluated model, for --to.")
    ] = "",
    dataset: Annotated[
        str, output_option(metavar="ORG/NAME", help="Its benchmark's dataset, for --to.")
    ] = "",
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


WithPage = Annotated[bool, output_option("--html", help="Also report.html.")]


@app.command(epilog=examples("hallujudge merge shard-1 shard-2 --out results"))
def merge(
    runs: Annotated[
        list[Path], argument(metavar="RUN", help="Folders that hallujudge score wrote.")
    ],
    out: NewFolder,
    html: WithPage = False,
    overwrite: Overwrite = False,
) -> ExitCode:
    """Runs over different items as one run."""
    before = Written.of(out)
    return show_new_run(sdk.merge_runs(runs, out, html=html, overwrite=overwrite), out, before)


@app.command(epilog=examples("hallujudge rescore results --variant corrected --out corrected"))
def rescore(
    run: Annotated[Path, argument(metavar="RUN", help="Folder that hallujudge score wrote.")],
    variant: Annotated[str, metric_option(help="Variant to score by.")],
    out: NewFolder,
    html: WithPage = False,
    overwrite: Overwrite = False,
) -> ExitCode:
    """Scores of a run by another variant, with its verdicts."""
    before = Written.of(out)
    made = sdk.rescore_run(run, out, variant=variant, html=html, overwrite=overwrite)
    return show_new_run(made, out, before)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparingOptions:
    """The options that all commands share which compare runs."""

    name: Annotated[
        list[str] | None, input_option(help="Name of a run; one for each, in their order.")
    ] = None
    model_name: ModelNames = None
    allow: Allow = None
    confidence: Annotated[float, statistics_option(help="Confidence level of the intervals.")] = (
        0.95
    )
    replicates: Annotated[
        int, statistics_option(help="Replicates of bootstrap and permutation test.")
    ] = 10_000
    seed: Annotated[int, statistics_option(help="Seed of the random numbers.")] = 0

    def options(self, scores: Sequence[str] = ()) -> comparison.CompareOptions:
        """Return the options of a comparison of some scores, by default of all."""
        return comparison.CompareOptions(
            scores=tuple(scores),
            names=tuple(self.name or ()),
            model_names=model_names(self.model_name),
            # Refusals name several fields with commas.
            allow=tuple(filter(None, ",".join(self.allow or ()).split(","))),
            confidence=self.confidence,
            replicates=self.replicates,
            seed=self.seed,
        )


@app.command(epilog=examples("hallujudge compare runs/llava runs/minigpt"))
def compare(
    *,
    runs: Annotated[
        list[Path], argument(metavar="RUN", help="Folders of runs, the baseline first.")
    ],
    score: Annotated[
        list[str] | None, input_option(metavar="NAME", help="Score to compare; repeatable.")
    ] = None,
    comparing: ComparingOptions,
    output_format: Format = "table",
    items: Annotated[
        Path | None, output_option(metavar="FILE", help="JSON lines file of all changed items.")
    ] = None,
    show_differences: Annotated[
        bool, output_option(help="List items whose references differ; then exit.")
    ] = False,
) -> ExitCode:
    """Compare runs: differences with intervals and tests."""
    # A changed item has two sides; of three runs it would be one of three pairs.
    if items is not None and len(runs) != 2:
        raise InvalidInputError(f"--items needs two runs, and {len(runs)} are given; name two")
    options = comparing.options(score or ())
    # Before the comparison, which refuses runs whose references differ.
    if show_differences:
        if len(runs) != 2:
            given = f"--show-differences needs two runs, and {len(runs)} are given"
            raise InvalidInputError(f"{given}; name two")
        differing = cli.differing_references(runs[0], runs[1], options)
        click.echo("".join(f"{each}\n" for each in differing), nl=False)
        click.echo(f"{amount(len(differing), 'item has', 'items have')} other references", err=True)
        return ExitCode.OK
    result = comparison.compare(*runs, options=options)
    if items is not None:
        changes = comparison.changed_items(*runs, options=options)
        count = write_lines(items, (change.to_json() for change in changes))
        click.echo(f"{count:,} changed items written to {items}", err=True)
    show_result(result, output_format)
    return ExitCode.OK


@app.command(
    epilog=examples(
        "hallujudge gate runs/new --baseline runs/old \\", "  --max-regression chair_i=0.01"
    )
)
def gate(
    *,
    run: Annotated[Path, argument(help="Folder of the run that is checked.")],
    baseline: Annotated[
        Path | None, input_option(metavar="RUN", help="Folder of the run to compare with.")
    ] = None,
    max_regression: Annotated[
        list[str] | None,
        statistics_option(metavar="SCORE=X", help="Largest worsening; repeatable."),
    ] = None,
    maximum: Annotated[
        list[str] | None,
        statistics_option("--max", metavar="SCORE=X", help="Largest value; repeatable."),
    ] = None,
    minimum: Annotated[
        list[str] | None,
        statistics_option("--min", metavar="SCORE=X", help="Smallest value; repeatable."),
    ] = None,
    max_unscored: Annotated[
        float | None, statistics_option(help="Largest share of items without a score.")
    ] = None,
    decide: Annotated[
        str, statistics_option(help="What fails a check: shown, observed or possible.")
    ] = "shown",
    comparing: ComparingOptions,
    output_format: Format = "table",
) -> ExitCode:
    """Limits on scores for CI: exit code 1 if one is exceeded."""
    limits = comparison.GateLimits(
        max_regression=_limits("--max-regression", max_regression),
        maximum=_limits("--max", maximum),
        minimum=_limits("--min", minimum),
        max_unscored=max_unscored,
        decide=cast("Decision", decide),
    )
    options = comparing.options()
    try:
        result = comparison.gate(run, baseline=baseline, limits=limits, options=options)
    except InvalidInputError:
        raise
    except (HallujudgeError, OSError) as err:
        # Exit code 1 means that a limit is exceeded, and nothing else.
        raise InvalidInputError(str(err)) from err
    show_result(result, output_format)
    return ExitCode.OK if result.passed else ExitCode.FAILED


def _limits(option: str, given: list[str] | None) -> dict[str, float]:
    """Return score -> limit, from ``SCORE=X``.

    Raises:
        InvalidInputError: A value has another form, or a score has two limits.
    """
    limits: dict[str, float] = {}
    for text in given or ():
        score, equals, number = text.partition("=")
        try:
            limit = float(number)
        except ValueError:
            equals = ""
        if not equals or not score:
            raise InvalidInputError(
                f"{option} {text!r:.80}: give a score and a number, such as f1=0.02"
            )
        if score in limits:
            raise InvalidInputError(f"{option} gives {score!r:.80} two limits; give one")
        limits[score] = limit
    return limits
