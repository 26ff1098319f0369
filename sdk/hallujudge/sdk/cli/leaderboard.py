"""``hallujudge leaderboard``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .app import ExitCode, app
from .compare import (
    Allow,
    Confidence,
    Format,
    Names,
    Replicates,
    Seed,
    check_format,
    compare_options,
    show_result,
)
from .panels import examples, input_option

__all__: list[str] = []


@app.command(epilog=examples("hallujudge leaderboard runs/llava runs/minigpt runs/blip"))
def leaderboard(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders of runs.")],
    score: Annotated[
        str,
        input_option("--score", metavar="NAME", help="Score to rank by.", show_default=False),
    ] = "",
    name: Names = None,
    allow: Allow = None,
    confidence: Confidence = 0.95,
    replicates: Replicates = 10_000,
    seed: Seed = 0,
    output_format: Format = "table",
) -> ExitCode:
    """Runs by rank, with intervals and groups that can't be told apart."""
    from ..comparison import leaderboard as rank

    check_format(output_format)
    options = compare_options(name, allow, confidence, replicates, seed)
    show_result(rank(*runs, score=score, options=options), output_format)
    return ExitCode.OK
