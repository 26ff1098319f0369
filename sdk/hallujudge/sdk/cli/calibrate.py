"""``hallujudge calibrate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
    option --cascade of hallujudge score.
    """
    from ..calibration import CalibrateOptions, write_calibration, write_cascade
    from ..calibration import calibrate as calibrate_run
    from ..calibration.show import page_of

    check_format(output_format)
    options = CalibrateOptions(labels=tuple(labels or ()), plan=plan, agreement=agreement)
    found = calibrate_run(run, options)
    written = [write_calibration(run, found), write_cascade(run, found)]
    if output_format == "json":
        typer.echo(found.to_text(), nl=False)
    else:
        show_page(page_of(found), output_format)
    typer.echo(f"written to {' and '.join(str(path) for path in written if path)}", err=True)
    return ExitCode.OK
