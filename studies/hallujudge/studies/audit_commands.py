"""``hallujudge audit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import click

from hallujudge.sdk import audit as audits
from hallujudge.sdk.cli.app import (
    ExitCode,
    app,
    examples,
    input_option,
    metric_option,
    output_option,
)
from hallujudge.sdk.cli.output import Format, show_result, write_lines
from hallujudge.sdk.cli.parameters import argument
from hallujudge.sdk.errors import InvalidInputError


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
