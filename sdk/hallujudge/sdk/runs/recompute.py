"""Recomputes a run's report from the files in its folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hallujudge.metrics import Report

from .read import read_run

__all__ = ["recompute"]


def recompute(folder: str | Path, *, group_by: Sequence[str] | None = None) -> Report:
    """Return the report of a run's folder, from the statistics in its ``items.jsonl``.

    Nothing is judged again. The values agree with ``report.json``; the groups may be others.

    Args:
        folder: What ``hallujudge score`` or ``report.save`` wrote.
        group_by: Fields to report groups by, out of those that the items carry; None for the
            groups of ``report.json``.

    Raises:
        ArchiveError: The folder does not hold a complete run.
    """
    run = read_run(folder)
    keys = tuple(run.report.groups) if group_by is None else tuple(group_by)
    report = run.tally(keys).finish(run.interval, version=run.release)
    return replace(
        report,
        signature=run.signature,
        settings=run.report.settings,
        notes=run.report.notes,
        judging=run.report.judging,
    )
