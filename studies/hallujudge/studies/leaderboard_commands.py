"""``hallujudge leaderboard`` and ``table``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from hallujudge.sdk import comparison
from hallujudge.sdk.cli.app import (
    ExitCode,
    app,
    examples,
    input_option,
    output_option,
    statistics_option,
)
from hallujudge.sdk.cli.output import Format, show_page, show_result
from hallujudge.sdk.cli.parameters import argument
from hallujudge.sdk.cli.run_commands import ComparingOptions
from hallujudge.sdk.runs.manifest import OVERVIEW

Runs = Annotated[
    list[Path], argument(metavar="RUN", help="Folders of runs, or the folder of score all.")
]


@app.command(epilog=examples("hallujudge leaderboard runs/llava runs/minigpt runs/blip"))
def leaderboard(
    *,
    runs: Runs,
    score: Annotated[
        str, input_option(metavar="NAME", help="Score to rank by.", show_default=False)
    ] = "",
    comparing: ComparingOptions,
    output_format: Format = "table",
) -> ExitCode:
    """Runs by rank, with intervals, and which can't be told apart."""
    options = comparing.options()
    # The folder of score all has several metrics, each with a leaderboard of its own.
    if len(runs) == 1 and (runs[0] / OVERVIEW).exists():
        show_result(comparison.leaderboards(runs[0], score=score, options=options), output_format)
    else:
        show_result(comparison.leaderboard(*runs, score=score, options=options), output_format)
    return ExitCode.OK


@app.command(
    epilog=examples("hallujudge table runs/llava runs/minigpt --columns category,score -f latex")
)
def table(
    *,
    runs: Runs,
    rows: Annotated[
        str, input_option(metavar="KEYS", help="Keys of the rows, with commas.")
    ] = "model",
    columns: Annotated[
        str, input_option(metavar="KEYS", help="Keys of the columns, with commas.")
    ] = "score",
    score: Annotated[
        list[str] | None,
        input_option(metavar="NAME", help="Score to show; repeatable."),
    ] = None,
    comparing: ComparingOptions,
    tests: Annotated[bool, statistics_option(help="Test models against the best one.")] = True,
    percent: Annotated[bool, output_option("--percent", help="Fractions in percent.")] = False,
    digits: Annotated[int | None, output_option(help="Decimals; 4, in percent 1.")] = None,
    intervals: Annotated[
        bool, output_option("--intervals", help="Intervals in the cells.")
    ] = False,
    output_format: Format = "table",
) -> ExitCode:
    """The paper's table: models by scores, the best in bold."""
    layout = comparison.TableLayout(
        rows=_keys(rows),
        columns=_keys(columns),
        percent=percent,
        digits=digits,
        intervals=intervals,
        tests=tests,
    )
    result = comparison.paper_table(*runs, layout=layout, options=comparing.options(score or ()))
    # A terminal has no room for the columns of several metrics; other formats have.
    if output_format == "table":
        show_page(result.narrow_page(), output_format)
    else:
        show_result(result, output_format)
    return ExitCode.OK


def _keys(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (part.strip() for part in text.split(","))))
