"""``hallujudge top``."""

from __future__ import annotations

import sys
from functools import partial
from typing import Annotated

import typer

from ..errors import InvalidInputError
from .app import ExitCode, app
from .panels import examples, server_option
from .terminal import is_terminal

__all__: list[str] = []


@app.command(epilog=examples("hallujudge top localhost:9464"))
def top(
    address: Annotated[
        str, typer.Argument(metavar="[HOST:PORT]", help="A server's metrics page.")
    ] = "127.0.0.1:9464",
    interval: Annotated[
        float, server_option(help="Seconds between readings.", min=0.2, max=3600)
    ] = 2.0,
) -> ExitCode:
    """A server at work: clients, queue, judges, rates and cost."""
    from ..top.reading import fetch, metrics_url
    from ..top.screen import TopApp

    read = partial(fetch, metrics_url(address))
    read()  # a wrong address is told as an error, not on the screen
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise InvalidInputError(
            f"hallujudge top needs a terminal; {metrics_url(address)} has its figures for programs"
        )
    TopApp(read, address, interval).run()
    return ExitCode.OK
