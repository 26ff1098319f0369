"""What the score commands share: their options, and the run that these describe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ..archives import InputOptions
from ..errors import InvalidInputError
from ..score_run import ScoreRun
from .run import FORMATS, ScoreCommand

__all__ = [
    "AllowDuplicates",
    "AllowMissing",
    "References",
    "Responses",
    "RunOptions",
    "by_domain",
]

Responses = Annotated[
    Path, typer.Option("--responses", help="File of responses.", show_default=False)
]
References = Annotated[
    Path | None,
    typer.Option("--references", help="File of references; not needed where responses carry them."),
]
AllowDuplicates = Annotated[
    bool, typer.Option("--allow-duplicates", help="Score every response of an id that repeats.")
]
AllowMissing = Annotated[
    bool,
    typer.Option("--allow-missing", help="Leave references without a response unscored."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options of every score command."""

    out: Annotated[Path, typer.Option("--out", help="Folder for report.json and items.jsonl.")]
    """Folder for results."""
    id_key: Annotated[str | None, typer.Option("--id-key", help="Key of the id.")] = None
    """Key of the id."""
    text_key: Annotated[
        str | None, typer.Option("--text-key", help="Key of the response's text.")
    ] = None
    """Key of the response's text."""
    allow_unknown: Annotated[
        bool,
        typer.Option("--allow-unknown", help="Leave responses without a reference unscored."),
    ] = False
    """Responses without a reference don't stop the run."""
    group_by: Annotated[
        list[str] | None,
        typer.Option("--group-by", help="Key of the responses to report groups by; repeatable."),
    ] = None
    """Keys to report groups by."""
    seed: Annotated[
        int, typer.Option("--seed", help="Where the intervals' random numbers start.")
    ] = 0
    """Where random numbers start."""
    replicates: Annotated[
        int, typer.Option("--replicates", help="Bootstrap replicates; 0 for no intervals.")
    ] = 1000
    """Bootstrap replicates."""
    confidence: Annotated[
        float, typer.Option("--confidence", help="Confidence of the intervals.")
    ] = 0.95
    """Confidence of intervals."""
    count_empty: Annotated[
        bool,
        typer.Option("--count-empty", help="Score empty responses as the released script does."),
    ] = False
    """Empty responses and failure texts are scored."""
    failure_text: Annotated[
        list[str] | None,
        typer.Option("--failure-text", help="Text (or file of texts) of failed calls; repeatable."),
    ] = None
    """More texts that stand in the place of a response when a call failed."""
    server: Annotated[
        str | None,
        typer.Option("--server", help="HOST:PORT of a server; without it this process scores."),
    ] = None
    """Who scores."""
    format: Annotated[
        list[str] | None,
        typer.Option("--format", help=f"{', '.join(FORMATS)}; repeatable, or with commas."),
    ] = None
    """What to print and leave."""

    def of(self, run: ScoreRun, judges: Mapping[str, object] | None = None) -> ScoreCommand:
        """Return the command that scores a run with these options.

        Args:
            run: What the metric's own options say.
            judges: Settings of judges in this process.
        """
        inputs = replace(run.inputs or InputOptions(), **self._shared_with(InputOptions))
        return ScoreCommand(
            run=replace(
                run,
                **self._shared_with(ScoreRun),
                inputs=inputs,
                options={**(run.options or {}), **self._response_options()},
            ),
            out=self.out,
            server=self.server,
            judges=judges or {},
            formats=_split(self.format),
        )

    def _response_options(self) -> dict[str, str]:
        """Return how missing responses are recognised, where that is not the default."""
        options = {"count_empty": "true"} if self.count_empty else {}
        if self.failure_text:
            options["failure_texts"] = "\n".join(map(_text_or_file, self.failure_text))
        return options

    def _shared_with(self, other: type) -> dict[str, Any]:
        """Return the options that another value has fields for, by name."""
        names = {entry.name for entry in fields(self)}
        return {
            entry.name: value
            for entry in fields(other)
            if entry.name in names and (value := getattr(self, entry.name)) is not None
        }


def _text_or_file(given: str) -> str:
    """Return the content of a file of texts, or the text itself.

    Raises:
        InvalidInputError: The file is not UTF-8 text.
    """
    try:
        path = Path(given)
        return path.read_text(encoding="utf-8-sig") if path.is_file() else given
    except UnicodeDecodeError as err:
        raise InvalidInputError(f"--failure-text {given}: the file is not UTF-8 text") from err
    except OSError:
        # A text may be longer than a file's name can be.
        return given


def _split(given: list[str] | None) -> tuple[str, ...]:
    """Formats as given: repeated, with commas, or both; a table where none was."""
    names = [name.strip() for part in given or [] for name in part.split(",")]
    return tuple(name for name in names if name) or ("table",)


def by_domain(graphs: list[str] | None, role: str) -> dict[str, str]:
    """Domain -> graph, from ``GRAPH`` (any domain, the empty one) and ``DOMAIN=GRAPH``.

    Args:
        graphs: What was given.
        role: What the graphs are of, for errors.

    Raises:
        InvalidInputError: Two graphs are given for one domain.
    """
    chosen: dict[str, str] = {}
    for value in graphs or ():
        domain, equals, name = value.partition("=")
        single = not equals or Path(value).exists()
        key, graph = ("", value) if single else (domain, name)
        if key in chosen:
            where = f"{role} of {key}" if key else role
            raise InvalidInputError(f"two graphs for {where}: {chosen[key]} and {graph}; give one")
        chosen[key] = graph
    return chosen
