"""``hallujudge audit``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .app import ExitCode, app
from .compare import Format, check_format, show_result
from .files import write_file
from .panels import examples, input_option, metric_option, output_option

if TYPE_CHECKING:
    from ..audit import Audit

__all__: list[str] = []


@app.command(epilog=examples("hallujudge audit logs/samples_pope.jsonl --items items.jsonl"))
def audit(
    archive: Annotated[
        str, typer.Argument(metavar="ARCHIVE", help="File of another tool, or its folder.")
    ],
    references: Annotated[
        list[Path] | None,
        input_option("--references", "-R", metavar="FILE", help="Labels or objects; repeatable."),
    ] = None,
    printed: Annotated[
        list[str] | None,
        input_option("--printed", metavar="NAME=NUMBER", help="Printed number; repeatable."),
    ] = None,
    harness: Annotated[
        str,
        input_option("--harness", metavar="NAME", help="Tool, if the layout does not tell it."),
    ] = "",
    category: Annotated[
        str, input_option("--category", metavar="NAME", help="Only category of the numbers.")
    ] = "",
    join: Annotated[
        str, input_option("--join", metavar="NAME", help="Join by auto, id, text or order.")
    ] = "auto",
    variant: Annotated[
        str, metric_option("--variant", metavar="NAME", help="Variant of our metric.")
    ] = "",
    items: Annotated[
        Path | None,
        output_option("--items", metavar="FILE", help="JSON lines file of each cause's items."),
    ] = None,
    output_format: Format = "table",
) -> ExitCode:
    """Explain why a tool's printed number and ours differ, from the tool's own archive.

    The number is taken from the results beside the archive, or from --printed.
    """
    from ..audit import AuditOptions
    from ..audit import audit as audit_archive

    check_format(output_format)
    options = AuditOptions(
        references=tuple(references or ()),
        printed=tuple(printed or ()),
        harness=harness,
        category=category,
        variant=variant,
        join=join,
    )
    result = audit_archive(archive, options)
    if items is not None:
        _write_items(items, result)
    show_result(result, output_format)
    return ExitCode.OK


def _write_items(path: Path, result: Audit) -> None:
    import json

    lines = [
        json.dumps(share.to_json(), ensure_ascii=False, allow_nan=False) for share in result.items()
    ]
    write_file(path, "".join(f"{line}\n" for line in lines))
    typer.echo(f"{len(lines):,} items written to {path}", err=True)
