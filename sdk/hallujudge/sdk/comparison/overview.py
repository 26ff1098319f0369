"""Scoring of a whole tree of archives, with one table of all models and metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hallujudge.judge_service.engine.spec import metric_of
from hallujudge.metrics import Report
from hallujudge.metrics.framework.results import JsonValue, UnscoredReason

from ..archives.further_files import GivenFiles
from ..archives.inputs import InputOptions
from ..errors import HallujudgeError, OutputError
from ..report.report_text import counted
from ..report.table_pages import PAGE_FORMATS, Grid, Page, Shown
from ..runs.manifest import OVERVIEW
from ..runs.stored_runs import read_run
from .named_runs import MODEL, notes_of_runs
from .overview_plan import plan_of
from .planned_runs import LeftOut, PlannedRun, RunChoice
from .table_cells import (
    BEST,
    SCORE,
    Entry,
    TableLayout,
    different_sizes,
    differing_unparsed_rates,
    shared_signatures,
    table_cells,
    table_grid,
)

if TYPE_CHECKING:
    from ..archives import References
    from ..client import Client

__all__ = [
    "LeftOut",
    "Overview",
    "ScoredRun",
    "score_all",
]

VARIANT = "variant"
"""The variant among the options of a metric."""
# Metrics with more scores, such as AMBER, show their first ones; report.json has all.
_MOST_SCORES = 6
_FIRST_SCORES = 4
OVERVIEW_FILES: Mapping[str, str] = {
    "overview.md": "markdown",
    "overview.csv": "csv",
    "overview.tex": "latex",
    "overview.html": "html",
}
"""File of the overview -> its format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredRun:
    """A run that was scored."""

    model: str
    """Name of the model."""
    name: str
    """Name of the run among the model's: the metric, and the task if there are several."""
    archive: str
    folder: Path
    """The run's folder, with its report and items."""
    report: Report
    """The report, without items."""
    next_step: str = ""
    """An example of an unscored item with its next step; empty if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview(Shown):
    """All runs of a tree of archives."""

    schema = "overview"

    runs: tuple[ScoredRun, ...]
    """The runs, by model and name."""
    left_out: tuple[LeftOut, ...]
    """Archives that were not scored."""
    beside: tuple[LeftOut, ...] = ()
    """Files without responses of their own: references, summaries, judged copies."""
    other_runs: tuple[LeftOut, ...] = ()
    """Archives of further runs of a model and task, of which the table has another one."""

    @property
    def complete(self) -> bool:
        """Whether every archive was scored, and every item of it."""
        unscored = any(run.report.coverage.unscored for run in self.runs)
        return bool(self.runs) and not self.left_out and not unscored

    def to_json(self) -> Mapping[str, JsonValue]:
        """Return the overview as plain values."""
        return {
            "runs": [_run_to_json(run) for run in self.runs],
            "left_out": [asdict(entry) for entry in self.left_out],
            "beside": [_to_json(entry) for entry in self.beside],
            "other_runs": [_to_json(entry) for entry in self.other_runs],
        }

    def page(self) -> Page:
        """Return one table of models and scores, and what each file is that was not scored."""
        return self._page([_scores("Scores by model", self.runs)], *_beside_notes(self.beside))

    def narrow_page(self) -> Page:
        """Return the same for a terminal: a table for each metric, and fewer names of files."""
        names = dict.fromkeys(run.name for run in self.runs)
        return self._page(
            [_scores(name, [run for run in self.runs if run.name == name]) for name in names]
        )

    def _page(self, grids: list[Grid], *more: str) -> Page:
        return Page(
            title="Overview",
            grids=tuple(grids),
            sentences=(*self._sentences(), *([BEST] if any(grid.bold for grid in grids) else [])),
            notes=(
                *map(_left_out_note, self.left_out),
                *(f"not in the table: {run.archive}: {run.reason}" for run in self.other_runs),
                *different_sizes(
                    (run.name, run.model, run.report.coverage.items) for run in self.runs
                ),
                *_unscored_notes(self.runs),
                *notes_of_runs((f"{run.model}, {run.name}", run.report.notes) for run in self.runs),
                *more,
            ),
            sources=shared_signatures(
                (run.name, run.model, run.report.signature) for run in self.runs
            ),
        )

    def _sentences(self) -> Iterable[str]:
        models = len({run.model for run in self.runs})
        yield (
            f"{counted(len(self.runs), 'run')} of {counted(models, 'model')} scored; "
            f"{counted(len(self.left_out), 'archive')} not scored; "
            f"{counted(len(self.beside), 'file')} without responses of their own."
        )


def score_all(
    folder: str | Path,
    out: str | Path,
    *,
    client: Client,
    references: Mapping[str, References] | None = None,
    inputs: Mapping[str, Mapping[str, object]] | None = None,
    options: Mapping[str, Mapping[str, object]] | None = None,
    runs: RunChoice = "newest",
    model_names: Mapping[str, str] | None = None,
    workers: int = 1,
    resume: bool = False,
    overwrite: bool = False,
    on_run: Callable[[ScoredRun | LeftOut], None] | None = None,
) -> Overview:
    """Score every archive of a folder by every metric that applies, and write one overview.

    A run is written to a folder of its own, ``OUT/MODEL/METRIC``. An archive that can't be scored
    does not stop the others; the overview names it and the reason.

    Args:
        folder: The folder with archives of any tools, models and benchmarks, or its URL.
        out: Folder for the runs and the overview, as Markdown, CSV, LaTeX, HTML and JSON.
        client: Scores.
        references: Metric -> its references, for archives that do not carry them. Where the keys
            of an archive fit several metrics or none, they decide. References in the folder of an
            archive are found.
        inputs: Metric -> options of its archives by name, such as ``{"mmhal": {"reviews": file}}``.
            Those in the folder of an archive are found too.
        options: Metric -> its variant and options, such as ``{"amber": {"nouns": "rules"}}``.
        runs: Which of several runs of one model and task are scored: the newest one that is about
            as large as the largest, the largest one, or all. The overview names the others.
        model_names: Name of a model in the archives -> its name in the overview. Models that get
            one name are in one row.
        workers: Processes that score each run; 1 is this process alone, 0 one for each core in
            large runs.
        resume: Whether to go on with runs that stopped in ``out``.
        overwrite: Whether runs of other inputs or settings in ``out`` are replaced.
        on_run: Called after each run.

    Raises:
        ArchiveError: The folder can't be read or has no files.
        OutputError: The overview can't be written.
        InvalidInputError: A metric has no such option of its archives, a given file is missing, the
            results would be among the archives, or no model has a name that is replaced.
    """
    out = Path(out)
    given = GivenFiles(references=references or {}, inputs=inputs or {})
    plan = plan_of(folder, out, given, choice=runs, model_names=model_names)
    # A tree may hold millions of items, and each run's folder has its own.
    score = partial(
        client.score, keep_items=False, workers=workers, resume=resume, overwrite=overwrite
    )
    scored: list[ScoredRun] = []
    left_out = list(plan.left_out)
    for planned in plan.runs:
        try:
            # A copy, of which _scored takes the variant out.
            own = dict((options or {}).get(planned.metric, {}))
            done: ScoredRun | LeftOut = _scored(score, planned, out / planned.folder, own)
        except HallujudgeError as err:
            done = _failed(planned, str(err))
        except Exception as err:
            # A defect in one run must not cost the overview of the others.
            done = _failed(planned, f"internal error, which you can report: {err!r:.200}")
        if isinstance(done, ScoredRun):
            scored.append(done)
        else:
            left_out.append(done)
        if on_run is not None:
            on_run(done)
    overview = Overview(
        runs=tuple(scored),
        left_out=tuple(left_out),
        beside=plan.beside,
        other_runs=plan.other_runs,
    )
    _write(overview, out)
    return overview


def _failed(planned: PlannedRun, why: str) -> LeftOut:
    """Return a run that could not be scored, with the names of files that the user knows."""
    # Files of a URL are downloaded: the paths of the copies mean nothing to the user.
    for copy, name in {str(planned.archive): planned.source, **planned.copies}.items():
        why = why.replace(copy, name)
    return LeftOut(archive=planned.source, reason=why, command=planned.command)


def _scored(
    score: Callable[..., Report], planned: PlannedRun, folder: Path, options: dict[str, object]
) -> ScoredRun:
    variant = str(options.pop(VARIANT, planned.variant))
    report = score(
        planned.metric,
        responses=planned.responses,
        references=planned.references,
        variant=variant,
        options=options,
        inputs=InputOptions(allow_missing=planned.allow_missing, own=planned.own),
        folder=folder,
    )
    return ScoredRun(
        model=planned.model,
        name=planned.name,
        archive=planned.source,
        folder=folder,
        report=report,
        # The items are read again for an example only where there is one.
        next_step=_next_step(folder, report) if report.coverage.unscored else "",
    )


def _write(overview: Overview, out: Path) -> None:
    page = overview.page()
    texts = {name: PAGE_FORMATS[kind](page) for name, kind in OVERVIEW_FILES.items()}
    texts[OVERVIEW] = overview.to_text()
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            # As they are: Windows would write each line feed as two characters.
            (out / name).write_text(text, encoding="utf-8", newline="")
    except OSError as err:
        raise OutputError(
            f"can't write to {out}: {err.strerror or err}; give another folder for the results"
        ) from err


def _left_out_note(entry: LeftOut) -> str:
    """Return why an archive was not scored; cells of tables are too small for it."""
    named = entry.reason.startswith(entry.archive)
    reason = entry.reason if named else f"{entry.archive}: {entry.reason}"
    if not entry.command:
        return f"not scored: {reason}"
    # Some reasons are whole sentences.
    return f"not scored: {reason.removesuffix('.')}. Command: `{entry.command}`"


def _beside_notes(beside: Iterable[LeftOut]) -> Iterable[str]:
    """Yield a note for each kind of file without responses of its own."""
    kinds: dict[str, list[str]] = {}
    for entry in beside:
        kinds.setdefault(entry.reason, []).append(entry.archive)
    for kind, archives in kinds.items():
        yield f"no responses of its own: {', '.join(archives)} ({kind})"


def _to_json(entry: LeftOut) -> dict[str, JsonValue]:
    return {"archive": entry.archive, "reason": entry.reason}


def _run_to_json(run: ScoredRun) -> dict[str, JsonValue]:
    coverage = run.report.coverage
    return {
        "model": run.model,
        "name": run.name,
        "archive": run.archive,
        "folder": str(run.folder),
        "metric": run.report.metric,
        "variant": run.report.variant,
        "items": coverage.items,
        "unscored": coverage.unscored,
        "scores": {
            name: {"value": score.value, "ci_low": score.ci_low, "ci_high": score.ci_high}
            for name, score in run.report.scores.items()
        },
        "notes": list(run.report.notes),
        "signature": run.report.signature,
    }


def _scores(title: str, runs: Sequence[ScoredRun]) -> Grid:
    """Return one row for each model and one column for each score."""
    columns = ("run", SCORE)
    cells = list(table_cells(list(_entries(runs)), TableLayout(columns=columns)))
    return table_grid(title, cells, (MODEL,), columns)


def _entries(runs: Sequence[ScoredRun]) -> Iterator[Entry]:
    for run in runs:
        metric = metric_of(run.report.metric, run.report.variant, run.report.settings)
        known = {score.name: score for score in metric.scores}
        alike = [
            each.report
            for each in runs
            if (each.name, each.report.metric) == (run.name, run.report.metric)
        ]
        shown = (*_shown_scores(run), *differing_unparsed_rates(metric, alike))
        for name in dict.fromkeys(shown):
            yield Entry(
                keys={MODEL: run.model, "run": run.name, SCORE: name},
                score=run.report.scores[name],
                definition=known[name],
                data=None,
                notes=tuple(f"{run.name}: {note}" for note in run.report.notes),
            )


def _shown_scores(run: ScoredRun) -> list[str]:
    scores = run.report.scores
    if len(scores) <= _MOST_SCORES:
        return list(scores)
    # A run may lack all that the first scores are of, such as AMBER's descriptions.
    known = [name for name, score in scores.items() if score.value is not None]
    return (known or list(scores))[:_FIRST_SCORES]


def _unscored_notes(runs: Iterable[ScoredRun]) -> Iterable[str]:
    for run in runs:
        coverage = run.report.coverage
        if coverage.unscored:
            reasons = ", ".join(f"{why} {count:,}" for why, count in coverage.reasons.items())
            yield (
                f"{run.model}, {run.name}: {coverage.unscored:,} of "
                f"{counted(coverage.items, 'item')} unscored ({reasons}){run.next_step}"
            )


def _next_step(folder: Path, report: Report) -> str:
    """Return an example of an unscored item and its next step, with options of the metric."""
    found = (each for each in read_run(folder).results() if each.reason)
    # A server of a newer release may know further reasons.
    if (first := next(found, None)) is None or first.reason not in UnscoredReason.__members__:
        return ""
    why, step = first.detail.rstrip("."), UnscoredReason[first.reason].next_step
    text = f". Example: item {first.id}: {why}. Next step: {step}"
    # A command for one metric takes its options by their names alone.
    return text.replace("the option ", f"the option {report.metric}.")
