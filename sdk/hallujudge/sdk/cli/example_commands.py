"""``hallujudge demo`` and ``hallujudge new``: example archives to try commands with."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from .app import ExitCode, app, examples, output_option

ExampleFolder = Annotated[
    Path | None, output_option("--out", "-o", metavar="DIR", help="Folder for the files.")
]
_DEMO = "chair"


@app.command(epilog=examples("hallujudge demo"))
def demo(
    *,
    out: Annotated[
        Path, output_option("--out", "-o", metavar="DIR", help="Folder for captions and report.")
    ] = Path("hallujudge-demo"),
) -> ExitCode:
    """Score 24 example captions on this machine, and write the report to look at."""
    from ..archive_examples import write_example
    from . import main

    example = write_example(_DEMO, out)
    words = shlex.split(example.command)[1:]
    # The files are named as from inside the folder, where the demo need not be run.
    code = main([str(out / word) if _is_path(word) else word for word in words] + ["--overwrite"])
    if code not in (ExitCode.OK, ExitCode.UNSCORED):
        return ExitCode(code)
    page = (out / "results" / "report.html").resolve()
    typer.echo(f"\nOpen in a browser: {page.as_uri()}\n")
    typer.echo(_again(out, example.command))
    return ExitCode.OK


@app.command(epilog=examples("hallujudge new pope"))
def new(
    metric: Annotated[
        str, typer.Argument(metavar="METRIC", help="A metric, as `hallujudge metrics` lists them.")
    ],
    *,
    out: ExampleFolder = None,
) -> ExitCode:
    """A tiny example archive of a metric, and the command that scores it."""
    from ..archive_examples import write_example

    folder = out or Path(f"{metric}-example")
    found = write_example(metric, folder)
    typer.echo(f"{folder} has {', '.join(found.files)}\n")
    typer.echo(_again(folder, found.command))
    return ExitCode.OK


def _is_path(word: str) -> bool:
    return word.endswith((".jsonl", ".json")) or word == "results"


def _again(folder: Path, command: str) -> str:
    """Return the command lines that score the files of a folder."""
    return f"To score {folder} yourself:\n\n    cd {shlex.quote(str(folder))}\n    {command}"
