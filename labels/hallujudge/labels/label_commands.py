"""``hallujudge label``, ``calibrate`` and ``judge``: human labels, and what they say of a judge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import click

# Its modules are imported when a command uses them: help pages wait for none of them.
from hallujudge import labels as room
from hallujudge.sdk.cli.app import (
    ExitCode,
    app,
    command_group,
    examples,
    input_option,
    judge_option,
    label_app,
    output_option,
    statistics_option,
)
from hallujudge.sdk.cli.options import LlmModel, LlmUrl, llm_options
from hallujudge.sdk.cli.output import Format, show_as, write_file
from hallujudge.sdk.cli.parameters import argument
from hallujudge.sdk.errors import InvalidInputError

if TYPE_CHECKING:
    from .label_plans import By, LabelPlan


LabelledRun = Annotated[Path, argument(help="Folder that hallujudge score wrote.")]
HumanLabels = Annotated[
    list[Path] | None, input_option(metavar="FILE", help="File of human labels; repeatable.")
]


@label_app.command(epilog=examples("hallujudge label plan results -n 100"))
def plan(
    run: LabelledRun,
    count: Annotated[
        int, input_option("-n", "--count", metavar="N", help="How many more to label.")
    ] = 100,
    by: Annotated[
        str | None, input_option(metavar="UNIT", help="What to draw: claim (default) or item.")
    ] = None,
    seed: Annotated[
        int | None, input_option(help="Seed of the random numbers; 0 if not given.")
    ] = None,
    out: Annotated[
        Path | None,
        output_option("--out", "-o", metavar="FILE", help="Plan; else label-plan.json in RUN."),
    ] = None,
    sheet: Annotated[
        Path | None, output_option(metavar="FILE", help="CSV file to fill in with labels.")
    ] = None,
) -> ExitCode:
    """Choose what to label next: a random sample by verdict and margin.

    A plan that exists already is extended; what it draws and its seed stay. Labels in RUN show
    where the judge errs, and more of the next ones are drawn there.
    """
    path = out or run / room.label_files.PLAN
    made = room.label_files.next_plan(run, path, count=count, by=_drawn_by(by), seed=seed)
    write_file(path, made.to_text())
    # Both files come before any output: a reader that closes the pipe (head) ends the command.
    if sheet is not None:
        write_file(sheet, room.label_files.plan_sheet(made, run))
    _print_plan(made)
    if sheet is not None:
        click.echo(f"written to {sheet}", err=True)
    click.echo(f"written to {path}", err=True)
    return ExitCode.OK


@label_app.command("import", epilog=examples("hallujudge label import results labels.jsonl"))
def import_labels(
    run: LabelledRun,
    files: Annotated[
        list[Path], argument(metavar="FILE", help="Files of labels: JSON lines or CSV.")
    ],
) -> ExitCode:
    """Add files of labels to labels.jsonl in a run's folder.

    Read are the HTML page's export, tables with the columns item, claim and label, and responses
    whose words are marked. A later label of one annotator replaces an earlier one. Rows without a
    label are left out, so that a sheet may be imported again and again while it is filled in.
    """
    added = room.label_files.add_labels(run, files)
    found, matched = added.found, added.matched
    click.echo(
        f"{len(found.labels):,} labels of {len(matched.claims):,} claims; items labelled in full: "
        f"{len(matched.items):,}; of claims or items that the run does not have: "
        f"{matched.unknown:,}; without a majority: {matched.unsure:,}"
    )
    if found.blank:
        click.echo(f"{found.blank:,} rows have no label yet")
    if added.note:
        click.echo(f"note: {added.note}")
    click.echo(f"written to {added.path}", err=True)
    return ExitCode.OK


def _drawn_by(name: str | None) -> By | None:
    if name not in (None, "claim", "item"):
        raise InvalidInputError(f"--by {name!r:.80}: choose claim or item")
    return cast("By | None", name)


def _print_plan(made: LabelPlan) -> None:

    click.echo(f"{len(made.units):,} {made.by}s to label, seed {made.seed}")
    for stratum in made.strata:
        margin = ""
        if stratum.low is not None:
            end = "" if stratum.high is None else f" to below {stratum.high:.4g}"
            margin = f", margin from {stratum.low:.4g}{end}"
        click.echo(f"  {stratum.verdict}{margin}: {stratum.drawn:,} of {stratum.units:,}")
    click.echo("expected width of the interval of the share that is hallucinated, for this run:")
    for gain in made.gains:
        click.echo(f"  {gain.labels:,} labels: {gain.width:.3f}")
    few = room.score_corrections.FEW_LABELS
    if len(made.units) < few:
        click.echo(
            f"note: with fewer than {few} labels calibrate reports the raw score; 100 are better. "
            "Repeat the command to draw more."
        )


@app.command(epilog=examples("hallujudge calibrate results --labels labels.jsonl"))
def calibrate(
    run: LabelledRun,
    labels: Annotated[
        list[Path] | None, input_option(metavar="FILE", help="File of labels; repeatable.")
    ] = None,
    plan: Annotated[
        Path | None, input_option(metavar="FILE", help="Plan of the labels; else that in RUN.")
    ] = None,
    reference: Annotated[
        Path | None, input_option(metavar="RUN", help="Run of a better judge, for --agreement.")
    ] = None,
    agreement: Annotated[
        float | None,
        statistics_option(
            metavar="SHARE", help="Find the margin above which verdicts agree so often."
        ),
    ] = None,
    output_format: Format = "table",
) -> ExitCode:
    """Correct a run's scores by human labels.

    Without --labels, labels.jsonl in RUN is read. calibration.json in RUN keeps the result, which
    reports and comparisons then show. With --agreement, cascade.json keeps the margin, for the
    option --cascade of hallujudge score. With --reference, the margin is learnt from the verdicts
    of another run of the same claims, and no score is corrected.
    """
    if reference is not None:
        return _from_reference(run, reference, agreement, output_format, other=labels or plan)
    options = room.run_calibration.CalibrateOptions(
        labels=tuple(labels or ()), plan=plan, agreement=agreement
    )
    found = room.run_calibration.calibrate(run, options)
    written = [
        room.label_files.write_calibration(run, found),
        room.label_files.write_cascade(run, found),
    ]
    show_as(output_format, found.to_text, lambda: room.calibration_tables.calibration_page(found))
    click.echo(f"written to {' and '.join(str(path) for path in written if path)}", err=True)
    return ExitCode.OK


def _from_reference(
    run: Path, reference: Path, agreement: float | None, output_format: str, *, other: object
) -> ExitCode:

    # Verdicts of a judge are not labels of people: corrected scores must not rest on both.
    if agreement is None or other:
        raise InvalidInputError(
            "--reference goes with --agreement, and without --labels and --plan; only labels of "
            "people correct scores"
        )
    learnt = room.run_calibration.learn_margin(run, reference=reference, agreement=agreement)
    path = room.label_files.write_cascade(run, learnt.calibration, learnt.reference)
    show_as(
        output_format,
        lambda: room.label_files.cascade_text(learnt.calibration, learnt.reference),
        lambda: room.calibration_tables.margin_page(learnt),
    )
    click.echo(f"written to {path}", err=True)
    return ExitCode.OK


_judge_app = command_group(
    "judge", "How well a judge does.", "hallujudge judge card results --labels labels.jsonl"
)


@_judge_app.command("list", epilog=examples("hallujudge judge list"))
def list_() -> None:
    """Print the small judges: model, licence, input, known accuracy."""
    click.echo(room.small_judge_table(), nl=False)


@_judge_app.command(epilog=examples("hallujudge judge panel results -o panel.json"))
def panel(
    run: Annotated[Path, argument(metavar="RUN", help="Folder of the panel's run.")],
    *,
    labels: HumanLabels = None,
    out: Annotated[
        Path | None, output_option("--out", "-o", metavar="FILE", help="JSON file of weights.")
    ] = None,
    output_format: Format = "table",
) -> ExitCode:
    """A panel's judges: agreement, dissent, cost, and weights for --panel-weights.

    Weights are learnt from labels; without any, from the votes of three or more judges (Dawid and
    Skene 1979). Nothing is judged again.
    """
    found = room.panel_card.panel_card(run, labels or ())
    if out is not None:
        write_file(out, found.to_text())
        click.echo(f"written to {out}", err=True)
    show_as(output_format, found.to_text, lambda: room.calibration_tables.panel_page(found, run))
    return ExitCode.OK


@_judge_app.command(epilog=examples("hallujudge judge card results --labels labels.jsonl"))
def card(
    run: Annotated[Path, argument(metavar="RUN", help="Folder of the judge's run.")],
    *,
    labels: HumanLabels = None,
    reference: Annotated[
        Path | None, input_option(metavar="RUN", help="Run of a judge taken as the truth.")
    ] = None,
    flips: Annotated[
        int, judge_option(metavar="N", min=0, help="Claims to judge again in seven ways.")
    ] = 0,
    llm_url: LlmUrl = None,
    llm_model: LlmModel = None,
    out: Annotated[
        Path | None, output_option("--out", "-o", metavar="FILE", help="JSON file of the card.")
    ] = None,
    output_format: Format = "table",
) -> ExitCode:
    """Print a judge's report card: agreement, biases, margins, costs.

    Without labels or another run, only what each judge gave and took is printed. Nothing is judged
    again, except with --flips: N claims are repeated, reworded, put together and reordered, which
    takes about six calls for each.
    """
    # Shares and costs need neither labels nor calls.
    if not (labels or reference or flips or out):
        shares = room.report_card.judging_of(run)
        content = {"judging": [share.to_json() for share in shares]}
        show_as(
            output_format,
            lambda: json.dumps(content, indent=1) + "\n",
            lambda: room.calibration_tables.judging_page(shares, run),
        )
        click.echo(
            "note: how often the verdicts are right is not known: give --labels FILE with human "
            "labels (hallujudge label plan chooses claims), or --reference RUN",
            err=True,
        )
        return ExitCode.OK
    found = room.report_card.judge_card(
        run,
        labels=tuple(labels or ()),
        reference=reference,
        flips=flips,
        judges=llm_options(llm_url, llm_model),
    )
    if out is not None:
        write_file(out, found.to_text())
        click.echo(f"written to {out}", err=True)
    show_as(output_format, found.to_text, lambda: room.calibration_tables.card_page(found))
    return ExitCode.OK
