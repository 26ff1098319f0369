"""``hallujudge compare``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InvalidInputError
from .app import ExitCode, app
from .files import write_file
from .panels import examples, input_option, output_option, statistics_option
from .terminal import output_width

if TYPE_CHECKING:
    from ..comparison import CompareOptions
    from ..comparison.shown import Shown
    from ..report.table_pages import Page

__all__ = [
    "Allow",
    "Confidence",
    "Format",
    "Names",
    "Replicates",
    "Seed",
    "check_format",
    "compare_options",
    "show_page",
    "show_result",
]

Names = Annotated[
    list[str] | None,
    input_option("--name", help="Name of a run; one for each, in their order."),
]
Allow = Annotated[
    list[str] | None,
    input_option(
        "--allow",
        metavar="FIELD",
        help="Signature fields that may differ; repeatable.",
    ),
]
Confidence = Annotated[
    float, statistics_option("--confidence", help="Confidence level of the intervals.")
]
Replicates = Annotated[
    int, statistics_option("--replicates", help="Replicates of bootstrap and permutation test.")
]
Seed = Annotated[int, statistics_option("--seed", help="Seed of the random numbers.")]
Format = Annotated[
    str,
    output_option(
        "--format", "-f", metavar="NAME", help="table, json, markdown, csv, latex, html."
    ),
]


@app.command(epilog=examples("hallujudge compare runs/llava runs/minigpt"))
def compare(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN", help="Folders of runs, the baseline first.")
    ],
    score: Annotated[
        list[str] | None,
        input_option("--score", metavar="NAME", help="Score to compare; repeatable."),
    ] = None,
    name: Names = None,
    allow: Allow = None,
    confidence: Confidence = 0.95,
    replicates: Replicates = 10_000,
    seed: Seed = 0,
    output_format: Format = "table",
    items: Annotated[
        Path | None,
        output_option("--items", metavar="FILE", help="JSON lines file of all changed items."),
    ] = None,
) -> ExitCode:
    """Compare runs: differences with intervals and tests."""
    from ..comparison import compare as compare_folders

    check_format(output_format)
    if items is not None and len(runs) != 2:
        raise InvalidInputError(f"--items needs two runs; {len(runs)} are given")
    options = compare_options(name, allow, confidence, replicates, seed, score)
    result = compare_folders(*runs, options=options)
    if items is not None:
        _write_items(items, runs[0], runs[1], options)
    show_result(result, output_format)
    return ExitCode.OK


def compare_options(
    names: Names,
    allow: Allow,
    confidence: Confidence,
    replicates: Replicates,
    seed: Seed,
    scores: list[str] | None = None,
) -> CompareOptions:
    """Return the options that all commands share which compare runs."""
    from ..comparison import CompareOptions

    return CompareOptions(
        scores=tuple(scores or ()),
        names=tuple(names or ()),
        # Refusals name several fields with commas.
        allow=tuple(filter(None, ",".join(allow or ()).split(","))),
        confidence=confidence,
        replicates=replicates,
        seed=seed,
    )


def check_format(name: str) -> None:
    """Refuse an unknown format before anything is computed.

    Raises:
        InvalidInputError: The format is unknown.
    """
    from ..report.table_pages import PAGE_FORMATS

    known = ("json", *PAGE_FORMATS)
    if name not in known:
        raise InvalidInputError(f"--format {name!r:.80}: choose from {', '.join(known)}")


def show_result(result: Shown, name: str) -> None:
    """Print a result in a format."""
    if name == "json":
        typer.echo(result.to_text(), nl=False)
    else:
        show_page(result.page(), name)


def show_page(page: Page, name: str) -> None:
    """Print a page in a format other than JSON; a table is as wide as the terminal."""
    from ..report.table_pages import PAGE_FORMATS, render_page

    text = render_page(page, width=output_width()) if name == "table" else PAGE_FORMATS[name](page)
    typer.echo(text, nl=False)


def _write_items(path: Path, first: Path, second: Path, options: CompareOptions) -> None:
    import json

    from ..comparison import changed_items

    lines = [
        json.dumps(change.to_json(), ensure_ascii=False, allow_nan=False)
        for change in changed_items(first, second, options=options)
    ]
    write_file(path, "".join(f"{line}\n" for line in lines))
    typer.echo(f"{len(lines):,} changed items written to {path}", err=True)
