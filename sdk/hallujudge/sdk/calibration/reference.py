"""Verdicts of another judge in the place of labels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hallujudge.metrics.calibration.calibrated_scores import Calibration

from ..errors import InvalidInputError
from ..labels import Label
from ..labels.verdicts import read_verdicts
from ..runs.stored_runs import StoredRun, read_run
from .calibrate import CalibrateOptions, calibrate_items

__all__ = ["LearntMargin", "learn_margin", "open_reference", "verdicts_as_labels"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearntMargin:
    """The margin from which on a judge's verdicts agree with those of a reference judge."""

    calibration: Calibration
    """The comparison of both. Its corrected scores are those of the reference judge, not people's.
    """
    reference: str
    """Signature of the reference judge's run."""


def open_reference(run: StoredRun, folder: str | Path) -> StoredRun:
    """Return the run of a reference judge.

    Raises:
        InvalidInputError: It is of another metric.
        ArchiveError: A file can't be read.
    """
    other = read_run(folder)
    if other.report.metric != run.report.metric:
        raise InvalidInputError(
            f"{other.folder}: a run of {other.report.metric}, not of {run.report.metric}"
        )
    return other


def verdicts_as_labels(run: StoredRun) -> list[Label]:
    """Return the verdicts of a run as labels of its claims."""
    return [
        Label(item=item.id, claim=claim.index, hallucinated=claim.hallucinated, text=claim.text)
        for item in read_verdicts(run)
        for claim in item.claims
        if claim.hallucinated is not None
    ]


def learn_margin(folder: str | Path, *, reference: str | Path, agreement: float) -> LearntMargin:
    """Find the margin from which on verdicts agree with those of a reference judge.

    The run of the reference judge may have a random sample of the run's items only.

    Args:
        folder: The run's folder.
        reference: Folder of a run of the same claims by the reference judge.
        agreement: Agreement that verdicts above the margin shall have.

    Raises:
        InvalidInputError: The runs have no claim in common, or verdicts have no margins.
        UnsupportedError: The metric's scores do not depend on verdicts.
        ArchiveError: A file can't be read.
    """
    CalibrateOptions(agreement=agreement)
    run = read_run(folder)
    other = open_reference(run, reference)
    found = calibrate_items(
        run.report,
        run.metric,
        list(read_verdicts(run)),
        verdicts_as_labels(other),
        interval=run.interval,
        agreement=agreement,
    )
    return LearntMargin(calibration=found, reference=other.signature)
