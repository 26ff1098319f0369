"""The folder that a run writes to.

Lines go to ``items.partial.jsonl`` and records to ``journal.partial.bin`` while the run scores.
The other files are staged at the end and replaced one by one, ``report.json`` last.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Self

from msgspec import Struct, structs

from hallujudge.judge_service.state_files import identity
from hallujudge.metrics import Report

from ..errors import ArchiveError, InvalidInputError, OutputError
from .folder_guards import (
    FolderLock,
    copy_open_file,
    lost_folder,
    make_folder,
    place_of,
    sync_folder,
    write_synced,
)
from .item_lines import signed_lines
from .journal import PART, SYNCED, EarlierRun, KeptParts, append, read_kept, write_marks
from .manifest import (
    ITEMS,
    JOURNAL,
    MANIFEST,
    MARKS,
    PAGE,
    PARQUET,
    REPORT,
    STALE,
    Manifest,
    partial,
    staged,
)
from .parts import Part
from .saved_items import about_of, page_of, pictures_of

# After a power loss, at most so many bytes of lines are checked against their CRC and scored again.
_SYNC_BYTES = 32 << 20
_PIECE = 1 << 20


class Started(Struct, frozen=True, kw_only=True):
    """What a folder holds of a run that starts or is resumed."""

    kept: KeptParts
    """The parts that are kept, in order."""
    complete: bool = False
    """Whether the run was complete already."""
    earlier: EarlierRun | None = None
    """The complete run whose other parts are kept, if some items are scored again."""
    notes: tuple[str, ...] = ()
    """Notes for the user."""


class RunFolder:
    """The folder that a run writes to.

    Every part is appended to ``items.partial.jsonl`` and ``journal.partial.bin``, so that a run
    that stops, for whatever reason, keeps what it has. An earlier run's results stay as they are
    until the new ones are complete. One run at a time writes to a folder.

    Args:
        folder: Created if it does not exist.
        inputs: Files that the run reads.
        overwrite: Whether the run may replace a complete run of other inputs or settings.
        again: Whether a complete run of the same inputs and settings is scored again.

    Raises:
        InvalidInputError: The run would overwrite one of its inputs.
        OutputError: The folder can't be created or written, or another run writes to it.
    """

    def __init__(
        self,
        folder: Path,
        *,
        inputs: Iterable[Path] = (),
        overwrite: bool = False,
        again: bool = False,
    ) -> None:
        self.folder = folder
        self._overwrite = overwrite
        self._again = again
        self.lines_path = partial(folder, ITEMS)
        """Where items are kept until the run is complete."""
        self.journal_path = partial(folder, JOURNAL)
        """Where the journal is until the run is complete."""
        self.written = 0
        """Number of items that the folder holds."""
        self._manifest: Manifest | None = None
        self._marks = b""
        self._places: list[tuple[int, int] | None] = []
        self._lines: BinaryIO | None = None
        self._journal: BinaryIO | None = None
        self._offset = 0
        self._synced = 0
        self._refuse_inputs(inputs)
        with self._errors(folder):
            make_folder(folder)
            # Find out that the folder can't be written before a judge is paid.
            probe = staged(folder, ITEMS)
            probe.touch()
            probe.unlink()
            self._lock = FolderLock(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        try:
            # The error may come of a folder that is gone: check says so, and saves its items first.
            if isinstance(error, (OSError, ArchiveError, OutputError)):
                self.check()
            if isinstance(error, (OSError, ArchiveError)) and not self.folder.exists():
                raise self._gone(self.folder) from error
        finally:
            self.close()

    def start(
        self,
        manifest: Manifest,
        *,
        resume: bool = False,
        marks: bytes = b"",
        completes: bool = False,
    ) -> Started:
        """Begin a run, or go on with the one that the folder holds.

        A complete run of the same inputs and settings stays as it is, unless it is resumed and
        items lack a verdict for a reason that may pass.

        Args:
            manifest: What is scored, and how.
            resume: Whether to go on where an earlier run stopped.
            marks: Places of the archive at which a resumed run can begin to read.
            completes: Whether items of a complete run can be scored again.

        Raises:
            InvalidInputError: The folder holds a run of other inputs or settings, and resuming
                was asked for or overwriting was not.
            VersionMismatchError: A newer release wrote it.
            ArchiveError: Its manifest is damaged.
            OutputError: The files can't be written.
        """
        self._manifest, self._marks = manifest, marks
        if resume and self._overwrite:
            raise InvalidInputError(
                "ScoreRun(resume=True) and ScoreRun(overwrite=True) are both given; choose one"
            )
        with self._errors(self.folder):
            return self._started(manifest, resume=resume, completes=completes)

    def _started(self, manifest: Manifest, *, resume: bool, completes: bool) -> Started:
        if resume and self.journal_path.exists():
            return self._resumed(manifest, self._earlier(manifest) if completes else None)
        earlier = None
        if (self.folder / REPORT).exists() and not self._overwrite:
            complete = self._complete(manifest)
            earlier = self._earlier(manifest) if completes else None
            if (resume and earlier is None) or not (resume or self._again):
                self._take(complete.kept)
                # A run may have been stopped after its report, before it was tidied.
                if not self.journal_path.exists():
                    self._tidy()
                more = f"{earlier}; ScoreRun(resume=True) scores them again" if earlier else ""
                return structs.replace(complete, notes=(*complete.notes, *filter(None, [more])))
            earlier = earlier if resume else None
        nothing = ("there is no run to resume; it starts from the beginning",)
        again = (f"{earlier}; the batches that hold them are scored again",)
        notes = (again if earlier else nothing) if resume else self._discarded()
        self._write_start(manifest)
        # The journal is created last: a folder that has one can be resumed.
        self._open("w+b")
        return Started(kept=KeptParts(), notes=notes, earlier=earlier)

    def add(self, part: Part) -> None:
        """Append a part.

        Raises:
            OutputError: The files can't be written, for example because the disk is full, or the
                folder was deleted or moved.
        """
        assert self._lines is not None, "start was called"
        assert self._journal is not None, "start was called"
        # Lines first, so that a record never refers to lines that were not written.
        with self._errors(self.lines_path):
            self._lines.write(part.lines)
            self._lines.flush()
        with self._errors(self.journal_path):
            append(self._journal, PART, part.entry(self._offset))
            self._journal.flush()
        self._offset += len(part.lines)
        self.written += part.items
        if self._offset - self._synced >= _SYNC_BYTES:
            with self._errors(self.lines_path):
                self._sync()
        self.check()

    def check(self) -> None:
        """Check that the folder and the files of the run are where they were.

        What was written to deleted files is lost when this process ends; it is therefore copied to
        a new folder of the same name.

        Raises:
            OutputError: The folder or a file in it was deleted, moved or replaced.
        """
        if self._found_places() == self._places:
            return
        assert self._lines is not None, "files that are open have a place"
        assert self._journal is not None, "files that are open have a place"
        moved = place_of(self._lines)
        with self._errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            if not (is_taken := self._is_taken()):
                self._restore(self._lines, self._journal)
        self._close_files()
        raise lost_folder(self.folder, self.written, moved, is_taken=is_taken)

    def finish(self, report: Report, *, html: bool = False) -> None:
        """Write the report and the page, and swap them in together with the items.

        Raises:
            OutputError: The files can't be written, for example because the disk is full, or the
                folder was deleted or moved.
        """
        self.check()
        with self._errors(self.lines_path):
            self._sync()
        made = [ITEMS, MANIFEST, REPORT, *([PAGE] if html else [])]
        try:
            self._stage(ITEMS, self._signed_lines(report.signature))
            self._stage(MANIFEST, map(Path.read_bytes, [partial(self.folder, MANIFEST)]))
            # The manifest is read while it is staged: a missing one then counts as a lost folder.
            self._stage(REPORT, [report.to_text().encode()])
            if html:
                self._stage(PAGE, self._page(report))
            # What a lost folder held can be written again as long as its files are open.
            self._close_files()
            self._swap(made)
        finally:
            for name in made:
                # An error of finishing comes before one of tidying up after it.
                with suppress(OSError):
                    staged(self.folder, name).unlink(missing_ok=True)

    def write_page(self, report: Report) -> None:
        """Write ``report.html`` of a complete run.

        Raises:
            OutputError: The file can't be written.
        """
        self._stage(PAGE, self._page(report))
        with self._errors(self.folder / PAGE):
            staged(self.folder, PAGE).replace(self.folder / PAGE)

    def close(self) -> None:
        """Close the files and let other runs write to the folder; what was written stays."""
        # On a full disk, closing a file fails but still releases it.
        for file in (self._lines, self._journal):
            with suppress(OSError):
                if file is not None:
                    file.close()
        self._lines = self._journal = None
        self._places = []
        self._lock.release()

    def kept(self, count: int) -> str:
        """Return what a run of ``count`` items that ended early has kept."""
        return (
            f"{self.written} of {count} items are kept in {self.folder}, without a report, which "
            "would not cover the rest"
        )

    def _complete(self, manifest: Manifest) -> Started:
        """Return the complete run that the folder holds, unless it is another one."""
        path = self.folder / MANIFEST
        if not path.exists():
            raise InvalidInputError(
                f"{self.folder} holds a {REPORT} without a {MANIFEST}, so that its run is not "
                "known; give another folder, or ScoreRun(overwrite=True) to replace it"
            )
        Manifest.read(path).refuse_other(manifest, self.folder)
        kept = read_kept(self.folder / JOURNAL, self.folder / ITEMS, trust=True)
        if kept.items != manifest.items:
            raise InvalidInputError(
                f"{self.folder} holds {kept.items} of the {manifest.items} items of its run; give "
                "another folder, or ScoreRun(overwrite=True) to score it again"
            )
        note = "the run is there already; nothing is scored"
        return Started(kept=kept, complete=True, notes=(note,))

    def _earlier(self, manifest: Manifest) -> EarlierRun | None:
        """Return the complete run of the folder, if it is the same and some reasons may pass."""
        path = self.folder / MANIFEST
        if not path.exists() or not (self.folder / REPORT).exists():
            return None
        kept = read_kept(self.folder / JOURNAL, self.folder / ITEMS, trust=True)
        if kept.items != manifest.items or Manifest.read(path).differences(manifest):
            return None
        return EarlierRun.of(self.folder)

    def _resumed(self, manifest: Manifest, earlier: EarlierRun | None) -> Started:
        path = partial(self.folder, MANIFEST)
        Manifest.read(path).refuse_other(manifest, self.folder)
        kept = read_kept(self.journal_path, self.lines_path)
        cut = max(0, self.journal_path.stat().st_size - kept.journal_end)
        # Both files then end with the last complete part.
        os.truncate(self.journal_path, kept.journal_end)
        # Lines that somebody deleted are scored again, but a missing file can't be truncated.
        self.lines_path.touch()
        os.truncate(self.lines_path, kept.lines_end)
        self._open("a+b")
        self._take(kept)
        notes = (
            f"the last {cut} bytes of the journal are incomplete or damaged and were cut off; "
            "their items are scored again"
            if cut
            else "",
            f"resumed: {kept.items} of {manifest.items} items were scored before",
        )
        return Started(kept=kept, notes=tuple(filter(None, notes)), earlier=earlier)

    def _take(self, kept: KeptParts) -> None:
        self._offset = self._synced = kept.lines_end
        self.written = kept.items

    def _discarded(self) -> tuple[str, ...]:
        """Return a note on the run that a new one replaces."""
        if not self.journal_path.exists():
            return ()
        items = read_kept(self.journal_path, self.lines_path).items
        if not items:
            return ()
        return (
            f"the run starts from the beginning; {items} items of a run that had stopped are "
            "discarded (ScoreRun(resume=True) would have kept them)",
        )

    def _open(self, mode: str) -> None:
        self._lines = self.lines_path.open(mode)  # type: ignore[assignment]  # a mode of bytes
        self._journal = self.journal_path.open(mode)  # type: ignore[assignment]
        self._places = self._found_places()

    def _found_places(self) -> list[tuple[int, int] | None]:
        """Return what is at the paths of the open files now; nothing if they are not open."""
        if self._journal is None:
            return []
        return [identity(path) for path in (self.folder, self.lines_path, self.journal_path)]

    def _write_start(self, manifest: Manifest) -> None:
        write_synced(partial(self.folder, MANIFEST), [manifest.to_text().encode()])
        write_marks(self.folder, manifest, self._marks)

    def _is_taken(self) -> bool:
        """Lock what is at the folder's path now; return whether it has or gets another run."""
        folder, _, journal = self._found_places()
        if journal not in (None, self._places[2]):
            return True
        if folder != self._places[0] and (self.folder / REPORT).exists():
            return True
        self._lock.release()
        try:
            self._lock = FolderLock(self.folder)
        except OutputError:
            # Another run has begun there since the lost folder's lock was released.
            return True
        return False

    def _restore(self, lines: BinaryIO, journal: BinaryIO) -> None:
        """Write to the folder at the path what the open files of the lost one have."""
        assert self._manifest is not None, "start was called"
        self._write_start(self._manifest)
        # The journal comes last: a folder that has one can be resumed.
        for file, path in ((lines, self.lines_path), (journal, self.journal_path)):
            copy_open_file(file, path, by=staged(self.folder, path.name))

    def _sync(self) -> None:
        """Flush everything to the disk, then record that in the journal."""
        assert self._lines is not None, "start was called"
        assert self._journal is not None, "start was called"
        for file in (self._lines, self._journal):
            file.flush()
            os.fsync(file.fileno())
        append(self._journal, SYNCED, b"")
        self._journal.flush()
        self._synced = self._offset

    def _close_files(self) -> None:
        for file in (self._lines, self._journal):
            if file is not None:
                file.close()
        self._lines = self._journal = None
        self._places = []

    def _signed_lines(self, signature: str) -> Iterator[bytes]:
        with self.lines_path.open("rb") as file:
            while piece := file.read(_PIECE):
                # Whole lines only: the signature is inserted at the end of each line.
                yield signed_lines(piece + file.readline(), signature)

    def _page(self, report: Report) -> Iterator[bytes]:
        path = self.journal_path if self.journal_path.exists() else self.folder / JOURNAL
        kept = read_kept(path, self.lines_path, trust=True)
        page = page_of(entry.shown for entry in kept.entries())
        pictures = pictures_of(self._manifest, self.folder)
        yield page.render(report, about_of(self._manifest), pictures).encode()

    def _stage(self, name: str, parts: Iterable[bytes]) -> None:
        with self._errors(self.folder / name):
            write_synced(staged(self.folder, name), parts)

    def _swap(self, names: Iterable[str]) -> None:
        """Replace the files of an earlier run by the new ones.

        The journal is renamed last. If the process is stopped before that, the run can still be
        resumed and finished.
        """
        with self._errors(self.folder):
            for name in STALE:
                (self.folder / name).unlink(missing_ok=True)
            # The report is replaced last: a folder that has it is complete.
            for name in sorted(names, key=REPORT.__eq__):
                staged(self.folder, name).replace(self.folder / name)
            self.journal_path.replace(self.folder / JOURNAL)
            self._tidy()
            sync_folder(self.folder)

    def _tidy(self) -> None:
        """Remove what a complete run needs no more."""
        for name in (ITEMS, MANIFEST, MARKS):
            partial(self.folder, name).unlink(missing_ok=True)

    def _refuse_inputs(self, inputs: Iterable[Path]) -> None:
        names = (ITEMS, JOURNAL, MANIFEST, PARQUET, *STALE)
        written = {os.path.realpath(self.folder / name) for name in names}
        written |= {
            os.path.realpath(partial(self.folder, name))
            for name in (ITEMS, JOURNAL, MANIFEST, MARKS)
        }
        if own := [path for path in inputs if os.path.realpath(path) in written]:
            raise InvalidInputError(
                f"{own[0]} is read by this run and would be overwritten; give another folder than "
                f"{self.folder} for the results"
            )

    @contextmanager
    def _errors(self, path: Path) -> Iterator[None]:
        try:
            yield
        except FileExistsError as err:
            raise InvalidInputError(
                f"{path} is not a folder; give another folder for the results",
                metadata={"path": str(path)},
            ) from err
        except FileNotFoundError as err:
            raise self._gone(path) from err
        except OSError as err:
            raise OutputError(
                f"can't write {path}: {err.strerror or err}; {self.written} items are kept. "
                f"{self._remedy(err)} another folder for the results",
                metadata={"path": str(path)},
            ) from err

    def _gone(self, path: Path) -> OutputError:
        return OutputError(
            f"{self.folder} was deleted, moved or replaced while the run wrote to it; repeat the "
            "run, or give another folder for the results",
            metadata={"path": str(path)},
        )

    def _remedy(self, err: OSError) -> str:
        """Return how to continue after a failed write, as the beginning of a sentence."""
        if err.errno in (errno.ENOSPC, errno.EDQUOT):
            return "Make room and go on with ScoreRun(resume=True), or give"
        if err.errno == errno.EFBIG:
            limit = "Raise the limit of file sizes (ulimit -f)"
            return f"{limit} and go on with ScoreRun(resume=True), or give"
        if self.written:
            return "Make the folder writable and go on with ScoreRun(resume=True), or give"
        return "Give"
