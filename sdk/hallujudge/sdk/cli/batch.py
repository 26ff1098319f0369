"""``hallujudge batch export`` and ``hallujudge batch import``: judges that are run offline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import InvalidInputError
from .app import ExitCode, app, batch_app
from .batching import batch_settings
from .panels import examples

__all__: list[str] = []

# Everything after the file is a score command, whose options are its own.
_REST = {"ignore_unknown_options": True, "allow_interspersed_args": False}

Score = Annotated[
    list[str], typer.Argument(metavar="SCORE", help="Command: score and its options.")
]


@batch_app.command(
    "export",
    context_settings=_REST,
    epilog=examples(
        "hallujudge batch export requests.jsonl \\",
        "    score tri-he -r answers.jsonl -R graphs.json --judge llm -o run",
    ),
)
def export_command(
    requests: Annotated[Path, typer.Argument(metavar="FILE", help="File of requests to write.")],
    score: Score,
) -> ExitCode:
    """Requests to language models that a score command would send, as a batch file."""
    return _scored(score, batch_requests=str(requests))


@batch_app.command(
    "import",
    context_settings=_REST,
    epilog=examples(
        "hallujudge batch import replies.jsonl \\",
        "    score tri-he -r answers.jsonl -R graphs.json --judge llm -o run",
    ),
)
def import_command(
    replies: Annotated[Path, typer.Argument(metavar="FILE", help="File of replies to read.")],
    score: Score,
) -> ExitCode:
    """Scores with a batch's replies, which go into the verdict cache of the run."""
    return _scored(score, batch_replies=str(replies))


def _scored(command: list[str], **settings: str) -> ExitCode:
    if command[:1] != ["score"]:
        raise InvalidInputError(
            f"{command[0]!r} is not a score command; write score and its options after the file"
        )
    token = batch_settings.set(settings)
    try:
        code = app(command, standalone_mode=False)
    finally:
        batch_settings.reset(token)
    return ExitCode(code)
