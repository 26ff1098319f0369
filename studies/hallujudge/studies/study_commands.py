"""Commands about finished runs: analyses, audits, leaderboards, tables; sheets and votes for them.

``hallujudge analyze``, ``label scores``, ``audit``, ``leaderboard``, ``table`` and
``build vidhal-best``.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, cast

import click

from hallujudge import sdk

# What commands do is imported when they are called: help pages wait for none of it.
from hallujudge import studies as room
from hallujudge.sdk import analysis, cli, comparison
from hallujudge.sdk import audit as audits
from hallujudge.sdk.cli.app import (
    ExitCode,
    app,
    build_app,
    examples,
    input_option,
    label_app,
    metric_option,
    output_option,
    statistics_option,
)
from hallujudge.sdk.cli.options import checked_out
from hallujudge.sdk.cli.output import (
    Format,
    echo_json,
    show_page,
    show_result,
    write_file,
    write_lines,
)
from hallujudge.sdk.cli.parameters import Declared, argument, parameter_of
from hallujudge.sdk.cli.run_commands import ComparingOptions, page_of_run
from hallujudge.sdk.errors import InvalidInputError
from hallujudge.sdk.runs.manifest import ANALYSIS, OVERVIEW, PAGE

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


@app.command(epilog=examples("hallujudge audit logs/samples_pope.jsonl --items items.jsonl"))
def audit(
    archive: Annotated[
        str, argument(metavar="ARCHIVE", help="File of another tool, or its folder.")
    ],
    references: Annotated[
        list[Path] | None,
        input_option("--references", "-R", metavar="FILE", help="Labels or objects; repeatable."),
    ] = None,
    printed: Annotated[
        list[str] | None, input_option(metavar="NAME=NUMBER", help="Printed number; repeatable.")
    ] = None,
    harness: Annotated[
        str, input_option(metavar="NAME", help="Tool, if the layout does not show it.")
    ] = "",
    category: Annotated[
        str, input_option(metavar="NAME", help="Only category of the numbers.")
    ] = "",
    join: Annotated[
        str, input_option(metavar="NAME", help="Join by auto, id, text or order.")
    ] = "auto",
    variant: Annotated[str, metric_option(metavar="NAME", help="Variant of our metric.")] = "",
    run: Annotated[
        Path | None, input_option(metavar="RUN", help="Run to compare a file of totals with.")
    ] = None,
    items: Annotated[
        Path | None, output_option(metavar="FILE", help="JSON lines file of each cause's items.")
    ] = None,
    output_format: Format = "table",
) -> ExitCode:
    """Explain why a tool's printed number and ours differ.

    The number is taken from the results next to the archive, or from --printed.
    """
    if run is not None:
        if items is not None:
            raise InvalidInputError("--items needs answers, which a file of totals does not hold")
        show_result(audits.audit_totals(archive, run), output_format)
        return ExitCode.OK
    options = audits.AuditOptions(
        references=tuple(references or ()),
        printed=tuple(printed or ()),
        harness=harness,
        category=category,
        variant=variant,
        join=join,
    )
    result = audits.audit(archive, options)
    if items is not None:
        # Compared as files, since one file may be named in two ways.
        read = [path for path in map(Path, (archive, *(references or ()))) if path.exists()]
        if items.exists() and any(map(items.samefile, read)):
            raise InvalidInputError(f"--items {items} is an input; give a new file")
        count = write_lines(items, (share.to_json() for share in result.items()))
        click.echo(f"{count:,} items written to {items}", err=True)
    show_result(result, output_format)
    return ExitCode.OK


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


@build_app.command(
    "vidhal-best",
    epilog=examples(
        "hallujudge build vidhal-best -R annotations.json --votes gpt.jsonl \\",
        "    --votes llama.jsonl --count 1000 -o best.json",
    ),
)
def build_vidhal_best(
    *,
    references: Annotated[
        Path, input_option("--references", "-R", metavar="FILE", help="VidHal's annotations.")
    ],
    votes: Annotated[list[Path], input_option(metavar="FILE", help="Votes of judges; repeatable.")],
    # Section 7.2 keeps the 1,000 best videos.
    count: Annotated[int, metric_option(min=1, help="Videos to keep.")] = 1000,
    out: Annotated[Path, output_option("--out", "-o", help="Annotations to write, as JSON.")],
) -> ExitCode:
    """VidHal: the videos with the best captions by votes."""
    checked_out(out, references)
    found = room.quality_of(*votes)
    # Without votes on all three criteria a video has no total to be ranked by.
    known = [video for video, scores in found.items() if scores["total"] is not None]
    kept = set(known[:count])
    # The annotations keep their own order, so that the file is a part of theirs.
    rows = room.annotations_of(references, kept)
    write_file(out, json.dumps(rows, ensure_ascii=False, indent=1) + "\n")
    click.echo(f"{len(rows):,} of {len(found):,} videos written to {out}")
    return ExitCode.OK
