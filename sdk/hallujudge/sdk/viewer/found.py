"""Runs below a folder: complete ones, and ones under way."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hallujudge.metrics import Report

from ..errors import HallujudgeError, InvalidInputError
from ..runs.kept import read_kept
from ..runs.lock import is_locked
from ..runs.manifest import Manifest
from ..runs.names import ITEMS, JOURNAL, MANIFEST, REPORT, partial
from ..runs.read import read_run

__all__ = ["FoundRun", "find_runs"]

_MOST_RUNS = 2_000
_DEPTH = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRun:
    """A run below the folder that is viewed."""

    name: str
    """Its path below the folder; ``.`` for the folder itself."""
    folder: Path
    """Its folder."""
    report: Report | None = None
    """Its report; None while the run is under way, or if it can't be read."""
    scored: int = 0
    """How many items a run under way has scored."""
    items: int = 0
    """How many items it has."""
    writing: bool | None = None
    """Whether a process writes to it now; None where the system can't tell."""
    date: str = ""
    """Day on which its report was written."""
    problem: str = ""
    """Why it can't be read; empty if it can."""

    @property
    def under_way(self) -> bool:
        """Whether the run is still being scored, or was stopped before its end."""
        return self.report is None and not self.problem

    @property
    def title(self) -> str:
        """Name on a page; empty for the folder itself."""
        return "" if self.name == "." else self.name

    @property
    def state(self) -> str:
        """What a run without a report does."""
        if self.writing is None:
            return "Not complete"
        return "Under way" if self.writing else "Stopped"


def find_runs(folder: Path) -> list[FoundRun]:
    """Return the runs below a folder by name.

    Args:
        folder: The folder; runs are searched six levels deep, the first 2,000 are returned.

    Raises:
        InvalidInputError: The folder does not exist.
    """
    if not folder.is_dir():
        raise InvalidInputError(f"{folder}: not a folder; give a folder of runs")
    return [_read(found, folder) for found in sorted(_candidates(folder))[:_MOST_RUNS]]


def _candidates(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        here = Path(root)
        if len(here.relative_to(folder).parts) >= _DEPTH:
            folders.clear()
        folders[:] = [name for name in folders if not name.startswith(".")]
        held = set(names)
        if {REPORT, MANIFEST} <= held or partial(here, MANIFEST).name in held:
            yield here


def _read(run: Path, folder: Path) -> FoundRun:
    name = run.relative_to(folder).as_posix()
    try:
        if partial(run, MANIFEST).exists():
            manifest = Manifest.read(partial(run, MANIFEST))
            kept = read_kept(partial(run, JOURNAL), partial(run, ITEMS), trust=True)
            return FoundRun(
                name=name,
                folder=run,
                scored=kept.items,
                items=manifest.items,
                writing=is_locked(run),
            )
        stored = read_run(run)
        items = stored.report.coverage.items
        return FoundRun(
            name=name, folder=run, report=stored.report, items=items, date=stored.date()
        )
    except (HallujudgeError, OSError) as err:
        return FoundRun(name=name, folder=run, problem=str(err))
