"""``--variant both``: the variants published and corrected of one metric, side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import typer

from hallujudge.judge_service.engine.registry import MetricEntry, metric_entry
from hallujudge.metrics import Report

from ..archives import ItemSource
from ..errors import InvalidInputError
from ..runs.manifest import VERDICTS
from ..runs.parts import UnscoredCounts
from .app import ExitCode
from .batching import batch_settings
from .run import ScoreCommand
from .submitting import submission
from .unscored import unscored_notes

__all__ = ["BOTH", "BothVariants", "compares_variants"]

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
        _check(command)
        if submission.get() is not None:
            raise InvalidInputError("submit takes one variant at a time; submit each by itself")
        if "batch_requests" in batch_settings.get():
            # The variants ask the same questions.
            return _of(command, _VARIANTS[0]).export()
        reports: list[Report] = []
        for variant in _VARIANTS:
            unscored = UnscoredCounts()
            report = _of(command, variant).score(unscored)
            if report is None:
                return ExitCode.FAILED
            command.note(*(f"{variant}: {note}" for note in unscored_notes(unscored)))
            reports.append(report)
        _print(command, reports)
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
        _check(self.command)
        return _of(self.command, _VARIANTS[0]).estimate()


def compares_variants(entry: MetricEntry) -> bool:
    """Return whether ``--variant both`` works for a metric."""
    return set(entry.variants) == set(_VARIANTS)


def _check(command: ScoreCommand) -> None:
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


def _of(command: ScoreCommand, variant: str) -> ScoreCommand:
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


def _print(command: ScoreCommand, reports: list[Report]) -> None:
    from ..report import PRINTED, render_variants

    for name in command.printed:
        if name == "table":
            typer.echo(render_variants(reports), nl=False)
            if not command.quiet:
                typer.echo(f"written to {', '.join(str(_folder(command, r)) for r in reports)}")
            continue
        for report in reports:
            typer.echo(PRINTED[name](report), nl=False)


def _folder(command: ScoreCommand, report: Report) -> Path:
    return command.out / report.variant
