"""``hallujudge analyze``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import InvalidInputError
from .app import ExitCode, app
from .files import write_file
from .options import by_domain

__all__: list[str] = []

_MOST_WORDS = 1000


@app.command()
def analyze(
    run: Annotated[Path, typer.Argument(help="Folder that `hallujudge score` left.")],
    words: Annotated[
        str | None,
        typer.Option(
            "--words",
            help="tri-he: numbers of first words for the trend, such as 10,20,40. Without it: "
            "steps of ten.",
        ),
    ] = None,
    share: Annotated[
        float, typer.Option("--share", help="tri-he: share of object pairs that is frequent.")
    ] = 0.2,
    companions: Annotated[
        int,
        typer.Option(
            "--companions", help="mementos: how many companions of a behaviour are usual."
        ),
    ] = 5,
    behavior_graph: Annotated[
        list[str] | None,
        typer.Option(
            "--behavior-graph",
            help="mementos: graph that brings behaviours to one word, as it was given to score.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the content of analysis.json instead of tables.")
    ] = False,
) -> ExitCode:
    """The papers' analyses of a run of tri-he or mementos; nothing is judged again."""
    from ..analysis import ANALYSIS_FILE, AnalysisOptions
    from ..analysis import analyze as analyze_run
    from ..report import render_analysis

    options = AnalysisOptions(
        words=_numbers(words),
        share=share,
        companions=companions,
        behavior_graphs=by_domain(behavior_graph, "behaviors"),
    )
    analysis = analyze_run(run, options)
    write_file(run / ANALYSIS_FILE, analysis.to_text())
    typer.echo(analysis.to_text() if as_json else render_analysis(analysis), nl=False)
    for note in analysis.notes:
        typer.echo(f"note: {note}", err=True)
    return ExitCode.OK


def _numbers(text: str | None) -> tuple[int, ...]:
    if text is None:
        return ()
    try:
        numbers = sorted({int(part) for part in text.split(",")})
    except ValueError as err:
        raise InvalidInputError(
            f"--words {text!r:.80}: give whole numbers with commas, such as 10,20,40"
        ) from err
    if len(numbers) > _MOST_WORDS:
        raise InvalidInputError(f"--words gives {len(numbers)} numbers; at most {_MOST_WORDS}")
    return tuple(numbers)
