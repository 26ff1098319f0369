"""Merging of shards: runs over parts of the items become one run over all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from hallujudge.metrics import Report, Tally

from ..archives.joins import IdCheck
from ..backends.base import RunHeader
from ..errors import ArchiveError, InvalidInputError
from .folder import RunFolder
from .manifest import ITEMS, JOURNAL, MANIFEST, MERGED_INPUT, REPORT, Manifest
from .parts import Part
from .saved_items import kept_shown, unsigned_lines
from .stored_runs import StoredRun, read_run


def merge_runs(
    folders: Sequence[str | Path],
    out: str | Path,
    *,
    html: bool = False,
    overwrite: bool = False,
) -> Report:
    """Merge runs over different items into one, without scoring again.

    The files have the same bytes as those of one run over all items in this order.

    Args:
        folders: Folders of complete runs of one metric with the same settings.
        out: Folder for the merged run; created if it does not exist.
        html: Whether to write ``report.html`` too.
        overwrite: Whether to replace a run of other items in the folder.

    Returns:
        The report over all items.

    Raises:
        ArchiveError: A folder does not hold a complete run.
        InvalidInputError: The runs differ in a setting, or an item is in several of them.
        OutputError: The merged run can't be written.
    """
    runs = [read_run(folder) for folder in folders]
    if not runs:
        raise InvalidInputError("no run is given; give the folders of the runs to merge")
    _refuse_different(runs)
    _refuse_duplicates(runs)
    return _merged(runs, Path(out), html=html, overwrite=overwrite)


def _merged(runs: Sequence[StoredRun], out: Path, *, html: bool, overwrite: bool) -> Report:
    header = header_of_run(runs[0])
    groups = _groups(runs)
    total = Tally(header.metric, groups)
    read = [run.folder / name for run in runs for name in (ITEMS, REPORT, MANIFEST, JOURNAL)]
    with RunFolder(out, inputs=read, overwrite=overwrite) as folder:
        if folder.start(_manifest(runs, header)).complete:
            return read_run(out).report
        for run in runs:
            for part in _parts(run, folder, html=html):
                folder.add(part)
                total.merge_bytes(part.tally)
        report = header.report(total, runs[0].interval)
        folder.finish(report, html=html)
    return report


def header_of_run(run: StoredRun) -> RunHeader:
    """Return what is known of a complete run before its first item."""
    own = run.tally_of_journal().finish(run.interval, version=run.release).notes
    # Notes on small samples come last; those of the merged run may differ.
    notes = run.report.notes[: len(run.report.notes) - len(own)]
    return RunHeader(
        metric=run.metric,
        signature=run.signature.partition("|ci:")[0],
        settings=run.report.settings,
        notes=notes,
        release=run.release,
    )


def _parts(run: StoredRun, merged: RunFolder, *, html: bool) -> Iterator[Part]:
    """Yield the parts of a run, as parts of the merged one."""
    with closing((run.folder / ITEMS).open("rb")) as file:
        for entry in run.entries():
            lines = b"".join(_lines(file, entry.items, run))
            shown = kept_shown(entry.shown, merged.written, html=html)
            yield Part.of(entry, unsigned_lines(lines, run.signature), shown=shown)


def _lines(file: BinaryIO, count: int, run: StoredRun) -> Iterator[bytes]:
    for _ in range(count):
        if not (line := file.readline()):
            raise ArchiveError(
                f"{run.folder / ITEMS}: fewer lines than the journal has items; the file is cut "
                "off: score again"
            )
        yield line


def _groups(runs: Sequence[StoredRun]) -> tuple[str, ...]:
    manifest = runs[0].manifest
    assert manifest is not None, "_refuse_different made sure of it"
    return tuple(manifest.settings.get("group_by", ()))


def _manifest(runs: Sequence[StoredRun], header: RunHeader) -> Manifest:
    manifests = [run.manifest for run in runs if run.manifest is not None]
    return replace(
        manifests[0],
        signature=header.signature,
        items=sum(map(len, runs)),
        inputs={
            f"{MERGED_INPUT}{number}.{name}": described
            for number, manifest in enumerate(manifests, 1)
            for name, described in manifest.inputs.items()
        },
        run={},
    )


def _refuse_different(runs: Sequence[StoredRun]) -> None:
    for run in runs:
        if run.manifest is None or not (run.folder / JOURNAL).exists():
            raise ArchiveError(
                f"{run.folder} has no {MANIFEST} or no {JOURNAL}; score it again to merge it"
            )
        differences = runs[0].manifest.other_settings(run.manifest) if runs[0].manifest else []
        if differences:
            raise InvalidInputError(
                f"{runs[0].folder} and {run.folder} can't be merged; they differ in "
                f"{'; '.join(differences)}"
            )


def _refuse_duplicates(runs: Sequence[StoredRun]) -> None:
    ids = IdCheck()

    def identifiers() -> Iterator[str]:
        return (str(line["id"]) for run in runs for line in run.lines())

    for identifier in identifiers():
        ids.add(identifier)
    if duplicates := ids.duplicates(identifiers):
        raise InvalidInputError(
            f"{len(duplicates)} items are in several of the runs, such as {duplicates[0]!r:.60}; "
            "merge runs over different items"
        )
