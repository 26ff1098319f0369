"""A run under way, or one that stopped: what its folder holds so far."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hallujudge.metrics import Report, Tally

from ..backends.base import RunHeader, metric_of
from .kept import read_kept
from .manifest import Manifest
from .names import ITEMS, JOURNAL, MANIFEST, partial
from .page import about_of, page_parts
from .parts import Entry
from .stored import interval_named

if TYPE_CHECKING:
    from ..report import PageAbout

__all__ = ["RunUnderWay", "read_under_way"]

_SHOWN_ITEMS = 5_000
_SETTING = "setting."


@dataclass(frozen=True, slots=True, kw_only=True)
class RunUnderWay:
    """What the folder of a run under way holds."""

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
    written = path.stat().st_mtime
    manifest = Manifest.read(path)
    journal = partial(folder, JOURNAL)
    if journal.exists():
        written = journal.stat().st_mtime
    kept = read_kept(journal, partial(folder, ITEMS), trust=True)
    return RunUnderWay(
        manifest=manifest,
        items=kept.items,
        written=datetime.fromtimestamp(written, tz=UTC),
        report=_report(manifest, kept.entries(), path) if kept.items else None,
        parts=page_parts(_first(kept.entries())),
    )


def _report(manifest: Manifest, entries: Iterable[Entry], path: Path) -> Report:
    header = _header(manifest)
    tally = Tally(header.metric, manifest.settings.get("group_by", ()))
    for entry in entries:
        tally.merge_bytes(entry.tally)
    return header.report(tally, interval_named(manifest.settings.get("interval", ""), path))


def _header(manifest: Manifest) -> RunHeader:
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


def _first(entries: Iterable[Entry]) -> Iterator[bytes]:
    """Yield what is kept of the first items: the page is made anew every few seconds."""
    count = 0
    for entry in entries:
        if count >= _SHOWN_ITEMS:
            return
        count += entry.items
        yield entry.shown
