"""``hallujudge analyze``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import InvalidInputError
from .app import ExitCode, app
from .files import write_file
from .options import by_domain
from .panels import examples, metric_option, output_option
from .wording import in_flags

__all__: list[str] = []

_MOST_WORDS = 1000


@app.command(epilog=examples("hallujudge analyze results --words 10,20,40"))
def analyze(
    run: Annotated[Path, typer.Argument(help="Folder that hallujudge score wrote.")],
    words: Annotated[
        str | None,
        metric_option("--words", help="tri-he: word counts of the trend, such as 10,20,40."),
    ] = None,
    share: Annotated[
        float, metric_option("--share", help="tri-he: share of object pairs that are frequent.")
    ] = 0.2,
    companions: Annotated[
        int,
        metric_option("--companions", help="mementos: usual companions of a behaviour."),
    ] = 5,
    behavior_graph: Annotated[
        list[str] | None,
        metric_option("--behavior-graph", help="mementos: graph of behaviours, as in score."),
    ] = None,
    as_json: Annotated[
        bool, output_option("--json", help="Content of analysis.json instead of tables.")
    ] = False,
) -> ExitCode:
    """Analyze a run: the papers' tables, and agreement with given judgements."""
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
        typer.echo(f"note: {in_flags(note)}", err=True)
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
