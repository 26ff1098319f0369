"""The command line's tree of commands; the modules of commands hang theirs on it."""

from __future__ import annotations

import enum
from typing import Annotated

import typer

__all__ = ["ExitCode", "app", "score_app"]


class ExitCode(enum.IntEnum):
    """What the shell is told."""

    OK = 0
    FAILED = 1
    BAD_INPUT = 2
    UNSCORED = 3


app = typer.Typer(
    name="hallujudge",
    help="Hallucination scores for vision and video language models.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
score_app = typer.Typer(help="Score responses that a model wrote.", no_args_is_help=True)
app.add_typer(score_app, name="score")


def _version(asked: bool) -> None:
    if asked:
        from .. import __version__

        typer.echo(f"hallujudge {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Hallucination scores for vision and video language models."""
