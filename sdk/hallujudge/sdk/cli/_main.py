"""Parses, calls one function, and maps errors to exit codes."""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable
from typing import Annotated

import typer
from typer.exceptions import TyperException

from ..errors import HallujudgeError, InvalidInputError, NotFoundError, UnsupportedError

__all__ = ["app", "main"]


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


def main() -> int:
    """Runs the command line."""
    from . import _commands, _graph, _mementos, _qa, _tri_he  # noqa: F401 - registers the commands

    return run(lambda: app(standalone_mode=False))


def run(command: Callable[[], object]) -> int:
    """Runs a command; a user's mistake becomes one line on standard error.

    Returns:
        The exit code.
    """
    try:
        code = command()
    except typer.Exit as err:
        return err.exit_code
    except typer.Abort:
        return _fail("stopped", ExitCode.FAILED)
    except KeyboardInterrupt:
        return _fail("stopped by Ctrl-C", ExitCode.FAILED)
    except (InvalidInputError, NotFoundError, UnsupportedError) as err:
        return _fail(str(err), ExitCode.BAD_INPUT)
    except HallujudgeError as err:
        return _fail(str(err), ExitCode.FAILED)
    except TyperException as err:
        if err.format_message().startswith("Usage:"):
            # Nothing was asked for: the message is the help page.
            typer.echo(err.format_message(), err=True)
            return int(ExitCode.BAD_INPUT)
        return _fail(f"{err.format_message()} (--help shows the options)", ExitCode.BAD_INPUT)
    except BrokenPipeError:
        # The reader of our output left, as `head` does; there is nobody to tell.
        sys.stderr.close()
        return ExitCode.FAILED
    except OSError as err:
        return _fail(
            f"{err.strerror or err}: check the disk and where output goes", ExitCode.FAILED
        )
    return int(code) if isinstance(code, int) else ExitCode.OK


def _fail(message: str, code: ExitCode) -> int:
    typer.echo(f"error: {message}", err=True)
    return int(code)
