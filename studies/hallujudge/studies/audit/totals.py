"""Totals that a harness printed, compared with the scores of a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from hallujudge.metrics import Report
from hallujudge.sdk.archives.archive_files import open_file
from hallujudge.sdk.archives.found_files import found_files
from hallujudge.sdk.archives.layouts.harnesses import RESULTS_READERS
from hallujudge.sdk.errors import ArchiveError, InvalidInputError
from hallujudge.sdk.report.table_pages import Grid, Page, Shown, show_number, values_of
from hallujudge.sdk.runs.stored_runs import read_run

from .audit import numbers_of_results

_KEYS = ("task", "score", "printed", "ours", "difference")
_DIGITS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedTotal:
    """A printed number and ours."""

    task: str
    """The tool's task."""
    score: str
    """Our name of the score."""
    printed: float
    """The tool's number, as a fraction."""
    ours: float
    """The run's score."""
    difference: float
    """Ours minus printed; 0 if the printed digits agree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalsAudit(Shown):
    """A results file without responses, next to a run of the same answers."""

    schema = "totals-audit"

    archive: str
    """The results file."""
    run: str
    """The run's folder."""
    metric: str
    signature: str
    """The run's signature."""
    totals: tuple[PrintedTotal, ...]
    """The scores that both have."""

    def page(self) -> Page:
        """Return the numbers as a table."""
        grid = Grid(
            title="Printed totals and ours",
            headings=_KEYS,
            rows=tuple(
                (
                    total.task,
                    total.score,
                    show_number(total.printed, digits=_DIGITS),
                    show_number(total.ours, digits=_DIGITS),
                    show_number(total.difference, signed=True, digits=_DIGITS),
                )
                for total in self.totals
            ),
            keys=_KEYS,
            values=values_of(self.totals, _KEYS),
        )
        return Page(
            title=f"{self.metric}: the totals of {Path(self.archive).name}, and ours",
            grids=(grid,),
            sentences=(
                "The file holds totals only, so what explains a difference can't be found: audit "
                "the sample files for that.",
            ),
            sources={self.run: self.signature},
        )


def audit_totals(archive: str | Path, run: str | Path) -> TotalsAudit:
    """Compare the totals of a results file with the scores of a run.

    Args:
        archive: The results file of lmms-eval or lm-evaluation-harness.
        run: The folder of the run.

    Raises:
        ArchiveError: The file is of another kind, or the folder does not hold a complete run.
        InvalidInputError: The file has no number of the run's metric.
    """
    files = found_files(archive)
    if len(files) != 1 or open_file(files[0]).reader not in RESULTS_READERS:
        raise ArchiveError(
            f"{archive} is not a results file of lmms-eval, which a run is compared with; leave "
            "the run out to audit an archive of answers"
        )
    # The file has no responses, so that ours are those of a run of the same answers.
    report = read_run(run).report
    totals = tuple(_totals(files[0].path, report))
    if not totals:
        raise InvalidInputError(
            f"{archive}: no task has a number of a score of {report.metric}; give a run of its "
            "metric"
        )
    return TotalsAudit(
        archive=str(archive),
        run=str(run),
        metric=report.metric,
        signature=report.signature,
        totals=totals,
    )


def _totals(path: Path, report: Report) -> Iterator[PrintedTotal]:
    found = numbers_of_results(path, report.metric, list(report.scores))
    for task, numbers in found.items():
        for name, printed in numbers.items():
            ours = report.scores[name].value
            if ours is not None:
                exact = Fraction(ours) - printed.value
                # Digits that the tool left out are not a difference.
                agrees = abs(exact) <= printed.unit / 2
                yield PrintedTotal(
                    task=task,
                    score=name,
                    printed=float(printed.value),
                    ours=ours,
                    difference=0.0 if agrees else float(exact),
                )
