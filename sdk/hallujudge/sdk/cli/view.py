"""``hallujudge view``."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from .app import ExitCode, app
from .panels import examples, server_option

__all__: list[str] = []


@app.command(epilog=examples("hallujudge view runs"))
def view(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of runs.")],
    port: Annotated[int, server_option("--port", help="Port; 0 for a free one.")] = 0,
    browser: Annotated[
        bool, server_option("--browser/--no-browser", help="Open the overview in a browser.")
    ] = True,
) -> ExitCode:
    """Pages of all runs below a folder, on this machine only."""
    from ..viewer import Viewer

    viewer = Viewer(folder, port)
    typer.echo(f"{viewer.address} shows the runs of {folder}; Ctrl-C ends it")
    if browser:
        webbrowser.open(viewer.address)
    try:
        viewer.serve()
    except KeyboardInterrupt:
        viewer.stop()
    return ExitCode.OK
