"""What a score command asks for: a run, its backend and its outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hallujudge.sdk import cli

from ..backends import Timeouts

if TYPE_CHECKING:
    from hallujudge.judge_service.settings.connection import Connection

    from ..runs.score_run import ScoreRun


FORMATS = ("table", "json", "markdown", "csv", "latex", "html")
"""The forms that a score command prints, or writes a page in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreCommand:
    """A scoring run of the command line: its inputs, backend and outputs.

    Score commands return it unexecuted, so that ``hallujudge submit`` and ``hallujudge batch`` can
    change what is done with the run.
    """

    run: ScoreRun
    """What is scored and how, with the folder for results."""
    server: str | None = None
    """Host and port of the server; None scores in this process."""
    connection: Connection | None = None
    """Certificates and API key for the server; None takes those of the environment."""
    connection_flags: tuple[str, ...] = ()
    """The options behind ``connection``, for the command that fetches a submitted run."""
    timeouts: Timeouts = field(default_factory=Timeouts)
    """How long the server may take."""
    judges: Mapping[str, object] = field(default_factory=dict)
    """Settings of the judges, for scoring in this process."""
    formats: tuple[str, ...] = ("table",)
    """What to print and which pages to write."""
    quiet: bool = False
    """Whether only scores are printed."""
    verbose: bool = False
    """Whether unscored items are listed."""
    all_rows: bool = False
    """Whether all scores of all groups are printed."""
    only_estimate: bool = False
    """Whether the cost is estimated instead of scoring."""
    request_id: str | None = None
    """Id of the request that submits the run as a job; empty for a hash; None scores the run."""
    batch_requests: Path | None = None
    """File to write the judges' requests to instead of scoring."""
    batch_replies: Path | None = None
    """File of replies to such requests, which are scored."""
    typed: tuple[str, ...] = ()
    """The command line, for notes in terms of its options."""
    then: Callable[[ScoreCommand], None] | None = None
    """What follows a run that was scored."""

    @property
    def out(self) -> Path:
        """The folder for results."""
        assert self.run.folder is not None, "score commands require --out"
        return Path(self.run.folder)

    @property
    def prints_table(self) -> bool:
        """Whether tables are printed."""
        return "table" in self.formats and not self.quiet

    def note(self, *notes: str) -> None:
        """Print notes on standard error, unless only scores are wanted."""
        for note in () if self.quiet else notes:
            click.echo(f"note: {cli.in_flags(note, self.typed)}", err=True)
