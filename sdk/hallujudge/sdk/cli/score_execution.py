"""One scoring run of the command line, from files to files, by one variant or by both."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence, Sized
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.judge_service.engine.spec import ScoreSpec
from hallujudge.judge_service.engine.streams import RunProgress
from hallujudge.judge_service.llm.cache_file import kept_replies
from hallujudge.metrics import Outcome, Report
from hallujudge.metrics.framework.report import JudgeShare
from hallujudge.metrics.framework.results import UnscoredReason
from hallujudge.sdk import cli

from .. import report as rendering
from ..archives.json_files import amount, named
from ..client import Client
from ..errors import InvalidInputError
from ..runs import RunFolder
from ..runs.folder import Started
from ..runs.folder_guards import tidied
from ..runs.journal import passing_reasons
from ..runs.manifest import VERDICTS
from ..runs.parts import EarlyWorkers, Entry, Part, UnscoredCounts
from ..runs.progress_bar import Progress, shown_progress, shown_reading
from ..runs.run_inputs import PreparedRun
from ..runs.score_run import ScoreRun, graph_notes
from ..runs.scoring import ProgressWatch, early_workers
from .app import ExitCode, app, stopped_by
from .declared_options import BOTH, VARIANTS, compares_variants
from .output import (
    Written,
    check_formats,
    echo_json,
    estimate_line,
    is_terminal,
    output_width,
    unscored_notes,
    where_written,
    with_flags,
)
from .run_options import FORMATS, ScoreCommand


@dataclass(frozen=True, slots=True)
class ScoreExecution:
    """A score command as it is carried out."""

    command: ScoreCommand
    """What is asked for."""

    def execute(self) -> ExitCode:
        """Do with the run what the options ask for; by default, score it and print its report.

        Raises:
            HallujudgeError: The run can't start or go on.
        """
        both = self.command.run.variant == BOTH
        if both:
            _check_variants(self.command.run)
            if self.command.only_estimate or self.command.batch_requests is not None:
                # Both variants ask the same questions.
                return ScoreExecution(_by_variant(self.command, VARIANTS[0])).execute()
        if self.command.only_estimate:
            return self._estimate()
        check_formats(self.command.formats, FORMATS)
        if self.command.request_id is not None:
            if both:
                raise InvalidInputError("submit takes one variant at a time; submit each by itself")
            return self._submit(self.command.request_id)
        if self.command.batch_requests is not None:
            return self._export(self.command.batch_requests)
        if self.command.batch_replies is not None and not both:
            self._refuse_without_model(self.command.run.spec())
        code = self._score_both() if both else self._score_one()
        for step in self.command.then if code in (ExitCode.OK, ExitCode.UNSCORED) else ():
            step(self.command)
        return code

    def _score_one(self) -> ExitCode:
        # The times before the run show afterwards whether this command wrote anything.
        unscored, before = UnscoredCounts(), Written.of(self.command.out)
        report = self._score(unscored)
        if report is None:
            return ExitCode.FAILED
        self._show(report, where_written(self.command.out, before))
        self.command.note(*_judgement_notes(report), *unscored_notes(unscored))
        self.command.note(*_passing_notes(unscored, self._replies))
        return ExitCode.UNSCORED if report.coverage.unscored else ExitCode.OK

    def _score_both(self) -> ExitCode:
        """Score by the variants published and corrected, and print them side by side."""
        reports: list[Report] = []
        before = {variant: Written.of(self.command.out / variant) for variant in VARIANTS}
        for variant in VARIANTS:
            unscored = UnscoredCounts()
            report = ScoreExecution(_by_variant(self.command, variant))._score(unscored)
            if report is None:
                return ExitCode.FAILED
            notes = (*unscored_notes(unscored), *_passing_notes(unscored, self._replies))
            self.command.note(*(f"{variant}: {note}" for note in notes))
            reports.append(report)
        places = [
            where_written(self.command.out / variant, time) for variant, time in before.items()
        ]
        self._print(reports, rendering.render_variants, "; ".join(places))
        unscored_items = any(report.coverage.unscored for report in reports)
        return ExitCode.UNSCORED if unscored_items else ExitCode.OK

    def _score(self, unscored: UnscoredCounts) -> Report | None:
        """Score and write the results; return None if the run was stopped.

        Args:
            unscored: Collects the reasons for unscored items.
        """
        # Outermost, so that the folder is closed when what a refused run left is removed.
        with tidied(self.command.out), ExitStack() as stack:
            spec = self.command.run.spec()
            # The processes of a large run start while its archive is read.
            workers = stack.enter_context(
                early_workers(
                    self.command.run, spec, self._judge_settings, local=self.command.server is None
                )
            )
            prepared = self._prepared(spec, workers)
            client = stack.enter_context(self._client())
            output = stack.enter_context(
                RunFolder(
                    self.command.out,
                    inputs=self.command.run.paths(),
                    overwrite=self.command.run.overwrite,
                    # Other replies make other verdicts of the same inputs and settings.
                    again=self.command.batch_replies is not None,
                )
            )
            # Counted before the run: replies of earlier ones are nothing that this one has kept.
            paid, own = _kept_replies(self._replies), _kept_replies(self.command.out / VERDICTS)
            kept = partial(_kept, output, prepared.items, self._replies)
            try:
                with self._progress(prepared.items) as progress:
                    watch = _Watch(self.command, unscored, progress)
                    report = client.score_into(output, prepared, watch)
                # Of the folder's own replies the run said so before it began.
                self.command.note(*(() if own else watch.reuse_notes))
                return report
            except KeyboardInterrupt as err:
                click.echo(f"stopped by {stopped_by(err)}: {kept()}", err=True)
                return None
            # Also for errors of other packages: what was paid for is kept, and the user must know.
            except BaseException:
                if output.written or _kept_replies(self._replies) > paid:
                    click.echo(kept(), err=True)
                raise

    def _estimate(self) -> ExitCode:
        """Print the number of judge calls, tokens and cost, without calling a judge.

        Raises:
            HallujudgeError: The files can't be read, or nothing of the metric can be estimated.
        """
        prepared = self._prepared(self.command.run.spec())
        with self._client() as client:
            rows = client.estimate_prepared(prepared)
        if not rows:
            click.echo("no calls: no language model judges or extracts")
        for row in rows:
            click.echo(estimate_line(row))
        return ExitCode.OK

    def _export(self, path: Path) -> ExitCode:
        """Write the requests to language models that scoring would send; nothing is scored.

        Raises:
            HallujudgeError: The files can't be read, or no language model would be called.
        """
        prepared = self._prepared(self.command.run.spec())
        self._refuse_without_model(prepared.spec)
        # What a run into the same folder has asked before is not asked again.
        known = self.command.out / VERDICTS
        cache = {"verdict_cache": str(known)} if known.exists() else {}
        with Client.embedded({**cache, **self._judge_settings}) as client:
            client.score_items(prepared.spec, prepared.items)
        with path.open("rb") as file:
            count = sum(1 for _ in file)
        click.echo(f"{count:,} requests written to {path}")
        return ExitCode.OK

    def _refuse_without_model(self, spec: ScoreSpec) -> None:
        """Refuse a batch file for a run that does not use one."""
        if self.command.server is not None or not metric_entry(spec.metric).calls_models(spec):
            raise InvalidInputError(
                "this run sends no request to a language model from here; choose a metric and "
                "options that ask one, such as --judge llm, without --server"
            )

    def _submit(self, request_id: str) -> ExitCode:
        """Submit the run to the server as a job, and print the job's id.

        Raises:
            HallujudgeError: The files can't be read, or the server refuses the job.
        """
        if self.command.server is None:
            raise InvalidInputError("a job needs a server; name it with --server")
        prepared = self._prepared(self.command.run.spec())
        with self._client() as client:
            info = client.submit_prepared(prepared, request_id)
        click.echo(info.id)
        at = shlex.join(("--server", self.command.server, *self.command.connection_flags))
        self.command.note(
            f"job {info.id} of {amount(info.items, 'item', 'items')} is {info.state}; get its "
            f"results with hallujudge fetch {info.id} {at} --out DIR"
        )
        return ExitCode.OK

    @property
    def _printed(self) -> tuple[str, ...]:
        """The formats to print, in the order given; the table if there is only a page."""
        return tuple(name for name in self.command.formats if name != "html") or ("table",)

    @property
    def _judge_settings(self) -> dict[str, object]:
        files = {
            "batch.requests": self.command.batch_requests,
            "batch.replies": self.command.batch_replies,
        }
        batch = {name: str(path) for name, path in files.items() if path is not None}
        return {**self.command.judges, **batch}

    @property
    def _replies(self) -> Path:
        """The file that keeps the replies of this run's judges."""
        return Path(str(self.command.judges.get("verdict_cache") or self.command.out / VERDICTS))

    def _prepared(self, spec: ScoreSpec, workers: EarlyWorkers | None = None) -> PreparedRun:
        """Read the inputs and print notes on them."""
        with nullcontext() if self.command.quiet else shown_reading():
            prepared = PreparedRun.of(self.command.run, spec, workers)
        graphs = graph_notes(spec) if spec.graphs else ()
        self.command.note(*graphs, *prepared.items.notes)
        return prepared

    def _show(self, report: Report, place: str) -> None:
        """Print a report in the formats that were asked for, and where it is."""
        if self.command.quiet:
            click.echo(rendering.render_scores(report), nl=False)
            return
        width, color, all_rows = output_width(), is_terminal(sys.stdout), self.command.all_rows

        def table(shown: Sequence[Report]) -> str:
            return rendering.render_table(shown[0], width=width, color=color, all_rows=all_rows)

        self._print([report], table, place)

    def _print(
        self, reports: Sequence[Report], table: Callable[[Sequence[Report]], str], place: str
    ) -> None:
        shown = [with_flags(report, self.command.typed) for report in reports]
        for name in self._printed:
            if name == "table":
                click.echo(table(shown), nl=False)
                if not self.command.quiet:
                    click.echo(place)
                continue
            for report, flagged in zip(reports, shown, strict=True):
                if name == "json":
                    # Programs read JSON, whatever calls them.
                    echo_json(report.to_text())
                else:
                    click.echo(rendering.PRINTED[name](flagged), nl=False)

    def _progress(self, items: Sized) -> AbstractContextManager[Progress]:
        """Return what shows the progress: a bar on a terminal, lines elsewhere."""
        if self.command.quiet:
            return nullcontext(Progress(len(items)))
        return shown_progress(len(items))

    def _client(self) -> Client:
        # An empty address, such as an unset shell variable, is an error; it does not mean None.
        if self.command.server is None:
            return Client.embedded(self._judge_settings)
        return Client(
            self.command.server, timeouts=self.command.timeouts, connection=self.command.connection
        )


class _Watch(ProgressWatch):
    """Prints notes on a run, and collects why items are unscored.

    Args:
        command: The command.
        unscored: Collects the reasons.
        progress: Counts what is scored.
    """

    def __init__(self, command: ScoreCommand, unscored: UnscoredCounts, progress: Progress) -> None:
        super().__init__(progress)
        self._command = command
        self._unscored = unscored
        self._replies = RunProgress()

    @property
    def reuse_notes(self) -> tuple[str, ...]:
        """How many replies were paid for before this run, if there are any."""
        now = self._replies
        if not now.reused:
            return ()
        found = amount(now.reused, "reply was", "replies were")
        out = self._command.out
        where = self._command.judges.get("verdict_cache") or f"the runs beside {out}"
        paid = amount(now.answers, "call was", "calls were")
        return (f"{found} known from {where}; {paid} paid for now",)

    def waits(self, progress: RunProgress) -> None:
        super().waits(progress)
        self._replies = progress

    def started(self, started: Started) -> None:
        self._command.note(*started.notes)

    def judged(self, shares: tuple[JudgeShare, ...], *, kept: bool) -> None:
        super().judged(shares, kept=kept)
        sentences = " ".join(cli.judging_sentences(shares)) if kept else ""
        self._command.note(*([f"kept and not paid again: {sentences}"] if sentences else []))

    def scored(self, part: Part | Entry) -> None:
        super().scored(part)
        self._unscored.merge(part.unscored)
        if isinstance(part, Part) and self._command.verbose:
            _list_unscored(part.lines)


def _list_unscored(lines: bytes) -> None:
    """Print each unscored item of a part."""
    for text in lines.splitlines():
        line = json.loads(text)
        if line["outcome"] == Outcome.UNSCORED.value:
            reason = f"unscored {line['id']}: {line['reason']}: {line['detail']}"
            click.echo(reason, err=True)


def _kept(output: RunFolder, items: Sized, replies: Path) -> str:
    """Return what a run that ended early has kept, and how it goes on."""
    paid = _paid(replies)
    more = f"; {paid}, and only calls that were under way may be paid for again" if paid else ""
    return f"{output.kept(len(items))}{more}. To go on, repeat the command with --resume"


def _kept_replies(path: Path) -> int:
    """Return how many replies of judges a file has."""
    if not path.exists():
        return 0
    return kept_replies(path)


def _paid(replies: Path) -> str:
    """Return how many replies of judges a file keeps; empty if there are none."""
    count = _kept_replies(replies)
    held = amount(count, "reply that was paid for is", "replies that were paid for are")
    return f"{held} kept in {replies}" if count else ""


def _passing_notes(unscored: UnscoredCounts, replies: Path) -> tuple[str, ...]:
    """Return how to complete a run of which something is unscored for a reason that may pass."""
    if not (reasons := passing_reasons(unscored)):
        return ()
    budget = UnscoredReason.JUDGE_BUDGET_EXHAUSTED in reasons
    raised = " and a higher --max-calls or --max-cost" if budget else " when the cause is gone"
    paid = _paid(replies)
    return (
        f"what {named(reasons)} left without a score or verdict is scored again by the same "
        f"command with --resume{raised}{f'; {paid} and used again' if paid else ''}",
    )


def _judgement_notes(report: Report) -> Iterator[str]:
    """Yield notes on descriptions of scored items without a verdict."""
    if "undecided" not in report.totals:
        return
    declined = report.judging[-1].declined if report.judging else {}
    why = ", ".join(f"{reason} {count:,}" for reason, count in declined.items())
    why = why and f": {why}"
    if count := int(report.totals["undecided"]):
        counted = f"do not count{why}"
        if report.variant == "published":
            counted = (
                "count as wrong, as in the released script; --variant corrected leaves them out"
            )
        judged = "judged description has" if count == 1 else "judged descriptions have"
        yield f"{count} {judged} no verdict; such descriptions {counted}"
    if why and report.variant == "published":
        left = amount(sum(declined.values()), "judged description is", "judged descriptions are")
        yield f"{left} left out{why}"


def _check_variants(run: ScoreRun) -> None:
    """Refuse ``--variant both`` for other variants, and for responses that are read only once."""
    entry = metric_entry(run.metric)
    if not compares_variants(entry):
        known = ", ".join(entry.variants)
        raise InvalidInputError(
            f"--variant {BOTH}: metric {run.metric} has the variants {known}; "
            f"{BOTH} stands for {' and '.join(VARIANTS)}"
        )
    if str(run.responses) == "-":
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
        run=replace(command.run, variant=variant, folder=command.out / variant),
        judges=judges,
    )


def executed(command: Sequence[str], **changes: Any) -> ExitCode:
    """Execute the words of a command, and return its exit code.

    Args:
        command: ``score METRIC`` with its options; or another command, such as a help page.
        changes: Fields of :class:`ScoreCommand` that the command line has no options for.
    """
    typed = tuple(command)
    result = app(typed, standalone_mode=False, obj=typed)
    if not isinstance(result, ScoreCommand):
        return ExitCode(result)
    return ScoreExecution(replace(result, typed=typed, **changes)).execute()
