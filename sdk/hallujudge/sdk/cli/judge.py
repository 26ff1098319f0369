"""``hallujudge judge``: how well a judge does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .app import ExitCode, app
from .compare import Format, check_format, show_page
from .files import write_file
from .judging import LlmModel, LlmUrl, llm_options
from .panels import examples, input_option, judge_option, output_option
from .strict import StrictTyper

__all__: list[str] = []

_judge_app = StrictTyper(
    help="How well a judge does.",
    no_args_is_help=True,
    epilog=examples("hallujudge judge card --on results --labels labels.jsonl"),
)
app.add_typer(_judge_app, name="judge")


@_judge_app.callback()
def _judge() -> None:
    """How well a judge does."""


@_judge_app.command("list", epilog=examples("hallujudge judge list"))
def list_() -> None:
    """Print the small judges: model, licence, input, known accuracy."""
    from hallujudge.judge_service.engine.judge_options import small_judge_table

    typer.echo(small_judge_table(), nl=False)


@_judge_app.command(epilog=examples("hallujudge judge card --on results --labels labels.jsonl"))
def card(
    run: Annotated[Path, input_option("--on", metavar="RUN", help="Folder of the judge's run.")],
    labels: Annotated[
        list[Path] | None,
        input_option("--labels", metavar="FILE", help="File of human labels; repeatable."),
    ] = None,
    reference: Annotated[
        Path | None,
        input_option("--reference", metavar="RUN", help="Run of a judge taken as the truth."),
    ] = None,
    flips: Annotated[
        int,
        judge_option("--flips", metavar="N", min=0, help="Claims to judge again in seven ways."),
    ] = 0,
    llm_url: LlmUrl = None,
    llm_model: LlmModel = None,
    out: Annotated[
        Path | None, output_option("--out", "-o", metavar="FILE", help="JSON file of the card.")
    ] = None,
    output_format: Format = "table",
) -> ExitCode:
    """Print a judge's report card: agreement, biases, margins, costs.

    Nothing is judged again, except with --flips: N claims are repeated, reworded, put together and
    reordered, which takes about six calls for each.
    """
    from ..calibration import judge_card
    from ..calibration.card_page import card_page

    check_format(output_format)
    found = judge_card(
        run,
        labels=tuple(labels or ()),
        reference=reference,
        flips=flips,
        judges=llm_options(llm_url, llm_model),
    )
    if out is not None:
        write_file(out, found.to_text())
        typer.echo(f"written to {out}", err=True)
    if output_format == "json":
        typer.echo(found.to_text(), nl=False)
    else:
        show_page(card_page(found), output_format)
    return ExitCode.OK
