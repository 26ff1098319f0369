"""``hallujudge calibrate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import InvalidInputError
from .app import ExitCode, app
from .compare import Format, check_format, show_page
from .panels import examples, input_option, statistics_option

__all__: list[str] = []


@app.command(epilog=examples("hallujudge calibrate results --labels labels.jsonl"))
def calibrate(
    run: Annotated[Path, typer.Argument(help="Folder that hallujudge score wrote.")],
    labels: Annotated[
        list[Path] | None,
        input_option("--labels", metavar="FILE", help="File of labels; repeatable."),
    ] = None,
    plan: Annotated[
        Path | None,
        input_option("--plan", metavar="FILE", help="Plan of the labels; else that in RUN."),
    ] = None,
    reference: Annotated[
        Path | None,
        input_option("--reference", metavar="RUN", help="Run of a better judge, for --agreement."),
    ] = None,
    agreement: Annotated[
        float | None,
        statistics_option(
            "--agreement",
            metavar="SHARE",
            help="Find the margin above which verdicts agree so often.",
        ),
    ] = None,
    output_format: Format = "table",
) -> ExitCode:
    """Correct a run's scores by human labels, without judging again.

    Without --labels, labels.jsonl in RUN is read. calibration.json in RUN keeps the result, which
    reports and comparisons then show. With --agreement, cascade.json keeps the margin, for the
    option --cascade of hallujudge score. With --reference, the margin is learnt from the verdicts
    of another run of the same claims, and no score is corrected.
    """
    from ..calibration import CalibrateOptions, write_calibration, write_cascade
    from ..calibration import calibrate as calibrate_run
    from ..calibration.show import page_of

    check_format(output_format)
    if reference is not None:
        return _from_reference(run, reference, agreement, output_format, other=labels or plan)
    options = CalibrateOptions(labels=tuple(labels or ()), plan=plan, agreement=agreement)
    found = calibrate_run(run, options)
    written = [write_calibration(run, found), write_cascade(run, found)]
    if output_format == "json":
        typer.echo(found.to_text(), nl=False)
    else:
        show_page(page_of(found), output_format)
    typer.echo(f"written to {' and '.join(str(path) for path in written if path)}", err=True)
    return ExitCode.OK


def _from_reference(
    run: Path, reference: Path, agreement: float | None, output_format: str, *, other: object
) -> ExitCode:
    from ..calibration import learn_margin, write_cascade
    from ..calibration.show import margin_page_of
    from ..calibration.stored import cascade_text

    if agreement is None or other:
        raise InvalidInputError(
            "--reference goes with --agreement, and without --labels and --plan; only labels of "
            "people correct scores"
        )
    learnt = learn_margin(run, reference=reference, agreement=agreement)
    path = write_cascade(run, learnt.calibration, learnt.reference)
    if output_format == "json":
        typer.echo(cascade_text(learnt.calibration, learnt.reference), nl=False)
    else:
        show_page(margin_page_of(learnt), output_format)
    typer.echo(f"written to {path}", err=True)
    return ExitCode.OK
