"""One scoring run of the command line, from files to files, by one variant or by both."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sized
from contextlib import AbstractContextManager, ExitStack, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from hallujudge.judge_service.engine.registry import MetricEntry, metric_entry
from hallujudge.metrics import Outcome, Report

from ..archives import ItemSource
from ..client import Client
from ..errors import InvalidInputError
from ..progress_bar import Progress, shown_progress
from ..runs import RunFolder
from ..runs.manifest import VERDICTS
from ..runs.parts import Part, PartSource, UnscoredCounts
from ..runs.run_inputs import PreparedRun, items_of
from ..runs.scoring import ProgressWatch
from ..score_run import ScoreRun
from ..spec_parts import graph_notes
from .app import ExitCode, stop_on_sigterm, stopped_by
from .output import estimate_line, in_flags, is_terminal, output_width, unscored_notes

if TYPE_CHECKING:
    from hallujudge.judge_service.engine.spec import ScoreSpec
    from hallujudge.judge_service.settings.connection import Connection

    from ..runs.folder import Started
    from ..runs.parts import Entry


batch_settings: ContextVar[Mapping[str, str]] = ContextVar("batch_settings", default={})  # noqa: B039
"""Settings of judges that are run offline; empty outside ``hallujudge batch``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A run that is submitted instead of being scored."""

    request_id: str = ""
    """Id of the request; empty: a hash of files and settings."""


submission: ContextVar[Submission | None] = ContextVar("submission", default=None)
"""The submission; None outside ``hallujudge submit``."""


FORMATS = ("table", "json", "markdown", "csv", "latex", "html")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreCommand:
    """A scoring run of the command line: its inputs, backend and outputs."""

    run: ScoreRun
    """What is scored and how."""
    out: Path
    """Folder for results."""
    server: str | None = None
    """Host and port of the server; None scores in this process."""
    connection: Connection | None = None
    """Certificates and API key for the server; None: those of the environment."""
    connection_flags: tuple[str, ...] = ()
    """The options behind ``connection``, for the command that fetches a submitted run."""
    progress_timeout: float = 600.0
    """Seconds for which the server may be at work without progress."""
    reconnect_timeout: float = 120.0
    """Seconds for which a server that was lost in the middle of a run is tried again."""
    judges: Mapping[str, object] = field(default_factory=dict)
    """Settings of the judges, for scoring in this process."""
    formats: tuple[str, ...] = ("table",)
    """What to print and which pages to write."""
    resume: bool = False
    """Whether to go on with the run that stopped in the folder."""
    no_text: bool = False
    """Whether items.jsonl holds a hash of each response instead of its text."""
    quiet: bool = False
    """Whether only scores are printed."""
    verbose: bool = False
    """Whether unscored items are listed."""

    def execute(self) -> ExitCode:
        """Score, write the results and print the report.

        Raises:
            HallujudgeError: The run can't start or go on.
        """
        _check_formats(self.formats)
        if "batch_requests" in batch_settings.get():
            return self.export()
        if "batch_replies" in batch_settings.get():
            self._refuse_without_model(self.run.spec())
        if (submitted := submission.get()) is not None:
            return self.submit(submitted)
        unscored = UnscoredCounts()
        report = self.score(unscored)
        if report is None:
            return ExitCode.FAILED
        self.show(report)
        self.note(*_claim_notes(report), *unscored_notes(unscored))
        return ExitCode.UNSCORED if report.coverage.unscored else ExitCode.OK

    def score(self, unscored: UnscoredCounts) -> Report | None:
        """Score and write the results; return None if the run was stopped.

        Args:
            unscored: Collects the reasons for unscored items.

        Raises:
            HallujudgeError: The run can't start or go on.
        """
        with ExitStack() as stack:
            stack.enter_context(stop_on_sigterm())
            spec = self.run.spec()
            workers = stack.enter_context(self._early_workers(spec))
            prepared = replace(self._prepared(spec), workers=workers)
            items = prepared.items
            client = stack.enter_context(self._client())
            output = stack.enter_context(RunFolder(self.out, inputs=self.run.paths()))
            try:
                with self._progress(items) as progress:
                    watch = _Watch(self, unscored, progress)
                    return client.score_into(output, prepared, watch)
            except KeyboardInterrupt as err:
                typer.echo(f"stopped by {stopped_by(err)}: {_kept(output, items)}", err=True)
                return None
            except BaseException:
                if output.written:
                    typer.echo(_kept(output, items), err=True)
                raise

    def export(self) -> ExitCode:
        """Write the requests to language models that scoring would send; nothing is scored.

        Raises:
            HallujudgeError: The files can't be read, or no language model would be called.
        """
        prepared = self._prepared(self.run.spec())
        self._refuse_without_model(prepared.spec)
        path = Path(batch_settings.get()["batch_requests"])
        known = (
            {}
            if not (self.out / VERDICTS).exists()
            else {"verdict_cache": str(self.out / VERDICTS)}
        )
        with Client.embedded({**known, **self.judges, **batch_settings.get()}) as client:
            client.score_items(prepared.spec, prepared.items)
        with path.open("rb") as file:
            count = sum(1 for _ in file)
        typer.echo(f"{count:,} requests written to {path}")
        return ExitCode.OK

    def _refuse_without_model(self, spec: ScoreSpec) -> None:
        """Refuse a batch file for a run that has no use for it."""
        if self.server is not None or not metric_entry(spec.metric).calls_models(spec):
            raise InvalidInputError(
                "this run sends no request to a language model from here; choose a metric and "
                "options that ask one, such as --judge llm, without --server"
            )

    def submit(self, submitted: Submission) -> ExitCode:
        """Submit the run to the server as a job, and print the job's id.

        Raises:
            HallujudgeError: The files can't be read, or the server refuses the job.
        """
        if self.server is None:
            raise InvalidInputError("a job needs a server; name it with --server")
        prepared = self._prepared(self.run.spec())
        with self._client() as client:
            info = client.submit_prepared(prepared, submitted.request_id)
        typer.echo(info.id)
        at = shlex.join(("--server", self.server, *self.connection_flags))
        self.note(
            f"job {info.id} is {info.state} and has {info.items:,} items; get its results with "
            f"hallujudge fetch {info.id} {at} --out DIR"
        )
        return ExitCode.OK

    @property
    def full_run(self) -> ScoreRun:
        """The run with what the options of output say."""
        html = "html" in self.formats
        return replace(
            self.run, folder=self.out, resume=self.resume, keep_text=not self.no_text, html=html
        )

    @property
    def printed(self) -> tuple[str, ...]:
        """The formats to print, in the order given; the table if there is only a page."""
        return tuple(name for name in self.formats if name != "html") or ("table",)

    @property
    def prints_table(self) -> bool:
        """Whether tables are printed."""
        return "table" in self.formats and not self.quiet

    def items(self) -> ItemSource:
        """Read the items again and return them."""
        return self.run.items()

    def estimate(self) -> ExitCode:
        """Print the number of judge calls, tokens and cost, without calling a judge.

        Raises:
            HallujudgeError: The files can't be read, or nothing of the metric can be estimated.
        """
        prepared = self._prepared(self.run.spec())
        with self._client() as client:
            rows = client.estimate_prepared(prepared)
        if not rows:
            typer.echo("no calls: no language model judges or extracts")
        for row in rows:
            typer.echo(estimate_line(row))
        return ExitCode.OK

    def _prepared(self, spec: ScoreSpec) -> PreparedRun:
        """Read the inputs and print notes on them."""
        items = items_of(self.full_run)
        self.note(*graph_notes(spec), *items.notes)
        return PreparedRun(run=self.full_run, spec=spec, items=items)

    def _early_workers(self, spec: ScoreSpec) -> AbstractContextManager[PartSource | None]:
        """Start the processes of a large run while its archive is read."""
        from ..runs.processes import early_workers

        local = self.server is None
        return early_workers(self.full_run, spec, self._judge_settings, local=local)

    @property
    def _judge_settings(self) -> dict[str, object]:
        return {**self.judges, **batch_settings.get()}

    def note(self, *notes: str) -> None:
        """Print notes on standard error, unless only scores are wanted."""
        for note in () if self.quiet else notes:
            typer.echo(f"note: {in_flags(note)}", err=True)

    def list_unscored(self, lines: bytes) -> None:
        """Print each unscored item of a part, if that is wanted."""
        for text in lines.splitlines() if self.verbose else ():
            line = json.loads(text)
            if line["outcome"] == Outcome.UNSCORED.value:
                told = f"unscored {line['id']}: {line['reason']}: {line['detail']}"
                typer.echo(told, err=True)

    def show(self, report: Report) -> None:
        """Print a report in the formats that were asked for."""
        from ..report import PRINTED, render_scores, render_table

        if self.quiet:
            typer.echo(render_scores(report), nl=False)
            return
        for name in self.printed:
            if name == "table":
                color = is_terminal(sys.stdout)
                typer.echo(render_table(report, width=output_width(), color=color), nl=False)
                typer.echo(f"written to {self.out}")
            else:
                typer.echo(PRINTED[name](report), nl=False)

    def _progress(self, items: ItemSource) -> AbstractContextManager[Progress]:
        """Return what shows the progress: a bar on a terminal, lines elsewhere."""
        if self.quiet:
            return nullcontext(Progress(len(items)))
        return shown_progress(len(items))

    def _client(self) -> Client:
        # An empty address, such as an unset shell variable, is an error; it does not mean None.
        if self.server is None:
            return Client.embedded(self._judge_settings)
        return Client(
            self.server,
            progress_timeout=self.progress_timeout,
            reconnect_timeout=self.reconnect_timeout,
            connection=self.connection,
        )


def _check_formats(formats: tuple[str, ...]) -> None:
    for name in formats:
        if name not in FORMATS:
            raise InvalidInputError(f"--format {name!r}: choose from {', '.join(FORMATS)}")


class _Watch(ProgressWatch):
    """Tells of a run that goes on, and collects why items are unscored.

    Args:
        command: Prints.
        unscored: Collects the reasons.
        progress: Counts what is scored.
    """

    def __init__(self, command: ScoreCommand, unscored: UnscoredCounts, progress: Progress) -> None:
        super().__init__(progress)
        self._command = command
        self._unscored = unscored

    def started(self, started: Started) -> None:
        self._command.note(*started.notes)

    def scored(self, part: Part | Entry) -> None:
        super().scored(part)
        self._unscored.merge(part.unscored)
        if isinstance(part, Part):
            self._command.list_unscored(part.lines)


def _kept(output: RunFolder, items: Sized) -> str:
    """Return what a run that ended early has kept, and how it goes on."""
    return f"{output.kept(len(items))}. To go on, repeat the command with --resume"


def _claim_notes(report: Report) -> tuple[str, ...]:
    """Return notes on claims and descriptions of scored items without a verdict."""
    return (*_judgement_notes(report), *_open_claim_notes(report))


def _judgement_notes(report: Report) -> tuple[str, ...]:
    if not (count := int(report.totals.get("undecided", 0))):
        return ()
    counted = "do not count"
    if report.variant == "published":
        counted = "count as wrong, as in the released script; --variant corrected leaves them out"
    judged = "judged description has" if count == 1 else "judged descriptions have"
    return (f"{count} {judged} no verdict; such descriptions {counted}",)


def _open_claim_notes(report: Report) -> tuple[str, ...]:
    if not (count := int(report.totals.get("unscored_claims", 0))):
        return ()
    # Each variant counts them differently.
    counted = "such claims are left out of the rates"
    if report.variant == "published":
        counted = (
            "such claims count as not hallucinated, as in the released script; --variant corrected "
            "leaves them out"
        )
    claims = "claim of a scored answer has" if count == 1 else "claims of scored answers have"
    return (f"{count} {claims} no verdict; {counted}. items.jsonl says why",)


BOTH = "both"
"""Name that stands for the variants published and corrected, side by side."""

_VARIANTS = ("published", "corrected")


@dataclass(frozen=True, slots=True, kw_only=True)
class BothVariants:
    """A scoring run by the variants published and corrected, into one folder each."""

    command: ScoreCommand
    """The run, whose variant is ``both``."""

    def execute(self) -> ExitCode:
        """Score by both variants and print them side by side.

        Raises:
            InvalidInputError: The metric has other variants, or the responses can be read only
                once.
            HallujudgeError: A run can't start or go on.
        """
        command = self.command
        _check_variants(command)
        if submission.get() is not None:
            raise InvalidInputError("submit takes one variant at a time; submit each by itself")
        if "batch_requests" in batch_settings.get():
            # The variants ask the same questions.
            return _by_variant(command, _VARIANTS[0]).export()
        reports: list[Report] = []
        for variant in _VARIANTS:
            unscored = UnscoredCounts()
            report = _by_variant(command, variant).score(unscored)
            if report is None:
                return ExitCode.FAILED
            command.note(*(f"{variant}: {note}" for note in unscored_notes(unscored)))
            reports.append(report)
        _print_variants(command, reports)
        unscored_items = any(report.coverage.unscored for report in reports)
        return ExitCode.UNSCORED if unscored_items else ExitCode.OK

    @property
    def prints_table(self) -> bool:
        """Whether tables are printed."""
        return self.command.prints_table

    def items(self) -> ItemSource:
        """Read the items again and return them."""
        return self.command.items()

    def estimate(self) -> ExitCode:
        """Print the number of judge calls of one variant; the other variant repeats them."""
        _check_variants(self.command)
        return _by_variant(self.command, _VARIANTS[0]).estimate()


def compares_variants(entry: MetricEntry) -> bool:
    """Return whether ``--variant both`` works for a metric."""
    return set(entry.variants) == set(_VARIANTS)


def _check_variants(command: ScoreCommand) -> None:
    entry = metric_entry(command.run.metric)
    if not compares_variants(entry):
        known = ", ".join(entry.variants)
        raise InvalidInputError(
            f"--variant {BOTH}: metric {command.run.metric} has the variants {known}; "
            f"{BOTH} stands for {' and '.join(_VARIANTS)}"
        )
    if str(command.run.responses) == "-":
        raise InvalidInputError(
            f"--variant {BOTH} reads the responses twice, and standard input can be read once; "
            "give a file"
        )


def _by_variant(command: ScoreCommand, variant: str) -> ScoreCommand:
    judges = dict(command.judges)
    entry = metric_entry(command.run.metric)
    called = command.server is None and entry.calls_models(command.run.spec())
    if called and not judges.get("verdict_cache"):
        # The second run repeats the first run's calls; a shared cache avoids paying for them twice.
        command.out.mkdir(parents=True, exist_ok=True)
        judges["verdict_cache"] = str(command.out / VERDICTS)
    return replace(
        command,
        run=replace(command.run, variant=variant),
        out=command.out / variant,
        judges=judges,
    )


def _print_variants(command: ScoreCommand, reports: list[Report]) -> None:
    from ..report import PRINTED, render_variants

    for name in command.printed:
        if name == "table":
            typer.echo(render_variants(reports), nl=False)
            if not command.quiet:
                typer.echo(
                    f"written to {', '.join(str(_variant_folder(command, r)) for r in reports)}"
                )
            continue
        for report in reports:
            typer.echo(PRINTED[name](report), nl=False)


def _variant_folder(command: ScoreCommand, report: Report) -> Path:
    return command.out / report.variant
