"""Runs in their folders: complete ones, recomputed ones, and those under way."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from hallujudge.judge_service.engine.spec import RunHeader, metric_of
from hallujudge.metrics import IntervalSettings, ItemResult, Metric, Report, Tally
from hallujudge.metrics.calibration.calibrated_scores import Calibration

from ..archives.records import Record
from ..errors import ArchiveError
from ..report.export_formats import plot_report
from ..report.page import Images, PageAbout
from ..report.page.document import content_digest, held_parts
from ..report.page.first_screen import run_identity
from ..trackers import Tracker, log_report
from .folder_guards import is_locked
from .journal import read_kept
from .manifest import ITEMS, JOURNAL, MANIFEST, PAGE, PARQUET, REPORT, Manifest, partial
from .parts import Entry, tally_of
from .report_outputs import items_frame, write_parquet
from .result_files import (
    head_of,
    interval_named,
    interval_of,
    is_counted,
    metric_of_head,
    read_calibration,
    records_of,
    result_of,
    stored_report,
)
from .saved_items import about_of, page_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame


# Of a run under way; a complete run's page shows ten times as many.
_SHOWN_ITEMS = 5_000
_SETTING = "setting."


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A complete run in its folder. Items are read from the disk whenever they are iterated."""

    folder: Path
    """Where its files are."""
    manifest: Manifest | None
    """What was scored and how; None if the folder has no manifest."""
    report: Report
    """The report, as ``report.json`` has it."""
    metric: Metric
    """The metric, without what only the signature holds."""
    interval: IntervalSettings
    """How the report's intervals were made."""
    release: str
    """Release of Hallujudge that wrote the run."""

    @property
    def signature(self) -> str:
        """The run's signature."""
        return self.report.signature

    def __len__(self) -> int:
        return self.report.coverage.items

    def lines(self) -> Iterator[Mapping[str, Any]]:
        """Yield the items as ``items.jsonl`` has them, in input order.

        Raises:
            ArchiveError: A line can't be read, or is from another run.
        """
        return (record.values for record in self._records())

    def results(self) -> Iterator[ItemResult]:
        """Yield id, group, outcome, statistics and fields of every item, in input order.

        Raises:
            ArchiveError: A line can't be read, or is from another run.
        """
        return (result_of(record, self.metric.columns) for record in self._records())

    def entries(self) -> Iterator[Entry]:
        """Yield the entries of the journal.

        Raises:
            ArchiveError: The journal is damaged, or covers other items than the report.
        """
        kept = read_kept(self.folder / JOURNAL, self.folder / ITEMS, trust=True)
        # Items that the variant leaves out are journaled, and count in no number of items.
        if kept.items < len(self):
            raise ArchiveError(
                f"{self.folder / JOURNAL}: {kept.items} items, but the report covers {len(self)}; "
                "the file is damaged: score again"
            )
        return kept.entries()

    def tally_of_journal(self) -> Tally:
        """Return the statistics of all items in the groups of the run, without reading its lines.

        Raises:
            ArchiveError: See :meth:`entries`.
        """
        groups = self.manifest.settings.get("group_by", ()) if self.manifest else ()
        return tally_of(self.entries(), self.metric, groups)

    def page(self, about: PageAbout | None = None, images: Images | None = None) -> str:
        """Return the report as an HTML page.

        Args:
            about: Title, inputs and baseline; None for those of the manifest.
            images: Where pictures come from; None for no pictures.

        Raises:
            ArchiveError: See :meth:`entries`.
        """
        return page_of(self._shown()).render(self.report, about or self.about(), images)

    def about(self) -> PageAbout:
        """Return title and inputs, as the manifest has them, and the calibration.

        Raises:
            ArchiveError: See :meth:`calibration`.
        """
        return structs.replace(about_of(self.manifest), calibration=self.calibration())

    def identity(self) -> str:
        """Return the name of the run in the labels of its page.

        Raises:
            ArchiveError: See :meth:`entries`.
        """
        content = about_of(self.manifest).content
        content = content or content_digest(held_parts(self.page_parts()))
        return run_identity(self.signature, content)

    def calibration(self) -> Calibration | None:
        """Return the scores corrected by human labels; None without labels.

        Raises:
            ArchiveError: The folder's calibration is damaged, or of another run.
        """
        return read_calibration(self.folder, self.signature)

    def date(self) -> str:
        """Return the day on which the report was written, in UTC."""
        # Neither the report nor the manifest holds a time, so that equal runs have equal bytes.
        written = (self.folder / REPORT).stat().st_mtime
        return datetime.fromtimestamp(written, tz=UTC).strftime("%Y-%m-%d")

    def page_parts(self) -> Sequence[bytes]:
        """Return what a page of several runs shows of the items.

        Raises:
            ArchiveError: See :meth:`entries`.
        """
        return page_of(self._shown()).parts()

    def _shown(self) -> Iterator[bytes]:
        return (entry.shown for entry in self.entries())

    def tally(self, group_by: Sequence[str] = ()) -> Tally:
        """Return the statistics of all items.

        Args:
            group_by: Fields to report groups by.
        """
        return Tally.of(self.metric, self.results(), group_by)

    def plot(self) -> Figure:
        """Return the report as a figure of matplotlib; see :meth:`RunReport.plot`."""
        return plot_report(self.report)

    def items_to_pandas(self) -> DataFrame:
        """Return the items as a DataFrame: outcome, response, fields, scores and statistics.

        Raises:
            ArchiveError: A line can't be read, or is from another run.
            MissingExtraError: pandas is not installed.
        """
        return items_frame(self.lines)

    def items_to_parquet(self, path: str | Path | None = None) -> Path:
        """Write the items as a Parquet file and return its path.

        Args:
            path: The file; None for ``items.parquet`` in the run's folder.

        Raises:
            ArchiveError: A line can't be read, or is from another run.
            MissingExtraError: pyarrow is not installed.
            OutputError: The file can't be written.
        """
        target = self.folder / PARQUET if path is None else Path(path)
        write_parquet(target, self.lines)
        return target

    def log_to(
        self, to: str | Tracker, *, step: int | None = None, model: str = "", dataset: str = ""
    ) -> None:
        """Log scores, signature and page to an experiment tracker.

        Args:
            to: Such as ``"mlflow"``; see :func:`hallujudge.sdk.trackers.log_report`.
            step: The step of training.
            model: The evaluated model, as ``ORG/NAME``.
            dataset: The benchmark's dataset on the Hub, as ``ORG/NAME`` or ``ORG/NAME:TASK``.

        Raises:
            InvalidInputError: The tracker is unknown, or lacks its folder, model or dataset.
            MissingExtraError: Its package is not installed.
        """
        # The run's folder stays as it is: logging writes nothing there.
        with tempfile.TemporaryDirectory(prefix="hallujudge-") as made:
            page = self.folder / PAGE
            if not page.exists():
                page = Path(made, PAGE)
                page.write_text(self.page(), encoding="utf-8")
            log_report(
                self.report,
                [self.folder / REPORT, page],
                to,
                step=step,
                model=model,
                dataset=dataset,
                lines=self.lines,
            )

    def _records(self) -> Iterator[Record]:
        count = 0
        for record in records_of(self.folder / ITEMS, self.signature):
            count += is_counted(record.values)
            yield record
        if count != len(self):
            raise ArchiveError(
                f"{self.folder / ITEMS}: {count} items, but the report covers {len(self)}; the "
                "file is cut off: score again"
            )


def read_run(folder: str | Path) -> StoredRun:
    """Return the run of a folder that ``hallujudge score`` or ``report.save`` wrote.

    Raises:
        ArchiveError: The folder does not hold a complete run; the message says what it lacks.
        VersionMismatchError: A newer release wrote it.
    """
    path = Path(folder)
    if not (path / REPORT).exists():
        raise ArchiveError(f"{path}: {_lack(path)}")
    found = (path / MANIFEST).exists()
    # The manifest is read first, because it names the format: the report of a newer release may
    # look damaged.
    manifest = Manifest.read(path / MANIFEST) if found else None
    head = head_of(path / REPORT)
    report = stored_report(head, path / REPORT)
    interval, release = interval_of(report.signature, path / REPORT)
    return StoredRun(
        folder=path,
        manifest=manifest,
        report=report,
        metric=metric_of_head(head, path),
        interval=interval,
        release=release,
    )


def _lack(folder: Path) -> str:
    """Return why a folder without a report is not a complete run, and what to do."""
    if not folder.exists():
        return "no such folder; give the folder of a run"
    if not folder.is_dir():
        return "not a folder; give the folder that hallujudge score wrote"
    journal = partial(folder, JOURNAL)
    if journal.exists() and is_locked(folder):
        return "the run is under way and has no report yet; wait for it to end"
    if any((folder / name).exists() for name in (MANIFEST, JOURNAL)) or journal.exists():
        # Only counted here: the run that goes on checks the lines.
        kept = read_kept(journal, partial(folder, ITEMS), trust=True).items
        return (
            f"the run is not complete: {kept:,} items are scored, and there is no {REPORT}; go on "
            "with ScoreRun(resume=True)"
        )
    if below := next(chain(folder.glob(f"*/{REPORT}"), folder.glob(f"*/*/{REPORT}")), None):
        return f"a folder of runs, not a run; give one or more of them, such as {below.parent}"
    return f"not a run: it has no {REPORT}; give the folder that hallujudge score wrote"


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
    # By the release that scored, whose verdicts these are.
    report = run.tally(keys).finish(run.interval, version=run.release)
    return replace(
        report,
        # The run's own: its metric lacks what only a signature holds.
        signature=run.signature,
        settings=run.report.settings,
        notes=run.report.notes,
        judging=run.report.judging,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunUnderWay:
    """A run that is scoring now, or that stopped: what its folder holds."""

    manifest: Manifest
    """What is scored, and how."""
    items: int
    """How many items are scored."""
    written: datetime
    """When the journal was written to."""
    report: Report | None
    """The report over these items; None before the first ones."""
    parts: Sequence[bytes]
    """What a page shows of the first items."""

    @property
    def about(self) -> PageAbout:
        """Title and inputs, as the manifest has them."""
        return about_of(self.manifest)


def read_under_way(folder: Path) -> RunUnderWay:
    """Return what the folder of a run under way holds. Nothing is locked or written.

    Raises:
        FileNotFoundError: No run is under way in the folder.
        ArchiveError: Its manifest can't be read.
    """
    path = partial(folder, MANIFEST)
    # Before the first part, the manifest tells when the run began.
    written = path.stat().st_mtime
    manifest = Manifest.read(path)
    journal = partial(folder, JOURNAL)
    if journal.exists():
        written = journal.stat().st_mtime
    # The page shows what the journal has; reading all lines again every few seconds would be slow.
    kept = read_kept(journal, partial(folder, ITEMS), trust=True)
    return RunUnderWay(
        manifest=manifest,
        items=kept.items,
        written=datetime.fromtimestamp(written, tz=UTC),
        report=_report_so_far(manifest, kept.entries(), path) if kept.items else None,
        parts=page_of(_first_shown(kept.entries())).parts(),
    )


def _report_so_far(manifest: Manifest, entries: Iterable[Entry], path: Path) -> Report:
    header = _header_of(manifest)
    tally = tally_of(entries, header.metric, manifest.settings.get("group_by", ()))
    return header.report(tally, interval_named(manifest.settings.get("interval", ""), path))


def _header_of(manifest: Manifest) -> RunHeader:
    """Return what is known of the run before its first item, without notes on its judge."""
    settings = {
        name.removeprefix(_SETTING): str(value)
        for name, value in manifest.settings.items()
        if name.startswith(_SETTING)
    }
    return RunHeader(
        metric=metric_of(manifest.metric, manifest.variant, settings),
        signature=manifest.signature,
        settings=settings,
        notes=(),
        release=manifest.release,
    )


def _first_shown(entries: Iterable[Entry]) -> Iterator[bytes]:
    """Yield the saved items of the first parts: the page is rendered again every few seconds."""
    count = 0
    for entry in entries:
        if count >= _SHOWN_ITEMS:
            return
        count += entry.items
        yield entry.shown
