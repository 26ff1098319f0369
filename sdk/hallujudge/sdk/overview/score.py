"""Scoring every archive of a tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..archives.inputs import InputOptions
from ..errors import HallujudgeError, OutputError
from .plan import PlannedRun, plan_of
from .result import LeftOut, Overview, ScoredRun

if TYPE_CHECKING:
    from ..archives import References
    from ..client import Client

__all__ = ["OVERVIEW_FILES", "score_all"]

OVERVIEW_FILES: Mapping[str, str] = {
    "overview.md": "markdown",
    "overview.csv": "csv",
    "overview.tex": "latex",
    "overview.html": "html",
}
"""File of the overview -> its format."""


def score_all(
    folder: str | Path,
    out: str | Path,
    *,
    client: Client,
    references: Mapping[str, References] | None = None,
    workers: int = 1,
    on_run: Callable[[ScoredRun | LeftOut], None] | None = None,
) -> Overview:
    """Score every archive of a folder by every metric that applies, and write one overview.

    A run is written to a folder of its own, ``OUT/MODEL/METRIC``. An archive that can't be scored
    does not stop the others; the overview names it and says why.

    Args:
        folder: The folder with archives of any tools, models and benchmarks, or its URL.
        out: Folder for the runs and the overview, as Markdown, CSV, LaTeX, HTML and JSON.
        client: Scores.
        references: Metric -> its references, for archives that do not carry them.
        workers: Processes that score each run; 1 is this process alone, 0 one for each core in
            large runs.
        on_run: Called after each run.

    Raises:
        ArchiveError: The folder can't be read or has no files.
        OutputError: The overview can't be written.
    """
    out = Path(out)
    known = dict(references or {})
    plan = plan_of(folder, out, known)
    runs: list[ScoredRun] = []
    left_out = list(plan.left_out)
    for planned in plan.runs:
        try:
            done: ScoredRun | LeftOut = _scored(
                client, planned, out / planned.folder, known.get(planned.metric), workers
            )
        except HallujudgeError as err:
            why = str(err).replace(str(planned.archive), planned.source)
            done = LeftOut(archive=planned.source, reason=why, command=planned.command)
        if isinstance(done, ScoredRun):
            runs.append(done)
        else:
            left_out.append(done)
        if on_run is not None:
            on_run(done)
    overview = Overview(runs=tuple(runs), left_out=tuple(left_out), beside=plan.beside)
    _write(overview, out)
    return overview


def _scored(
    client: Client,
    planned: PlannedRun,
    folder: Path,
    references: References | None,
    workers: int,
) -> ScoredRun:
    report = client.score(
        planned.metric,
        responses=planned.archive,
        references=references,
        variant=planned.variant,
        inputs=InputOptions(allow_missing=planned.allow_missing),
        folder=folder,
        keep_items=False,
        workers=workers,
    )
    return ScoredRun(
        model=planned.model,
        name=planned.name,
        archive=planned.source,
        folder=folder,
        report=report,
    )


def _write(overview: Overview, out: Path) -> None:
    from ..report.grids import PAGE_FORMATS

    page = overview.page()
    texts = {name: PAGE_FORMATS[kind](page) for name, kind in OVERVIEW_FILES.items()}
    texts["overview.json"] = overview.to_text()
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (out / name).write_text(text, encoding="utf-8", newline="")
    except OSError as err:
        raise OutputError(
            f"can't write to {out}: {err.strerror or err}; give another folder for the results"
        ) from err
