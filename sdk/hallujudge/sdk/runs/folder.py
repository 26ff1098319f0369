"""The folder of a run: ``items.jsonl``, ``report.json`` and pages, swapped in when complete."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self

from hallujudge.metrics import Report

from ..analysis import ANALYSIS_FILE
from ..errors import InvalidInputError, OutputError
from .lines import item_line, signed

if TYPE_CHECKING:
    from ..backends.base import BatchResult
    from ..report import HtmlPage

__all__ = ["PARSERS_FILE", "RunFolder"]

PARSERS_FILE = "parsers.json"
"""The comparison of answer parsers, which ``score pope --all-parsers`` writes."""

_ITEMS, _REPORT, _PAGE = "items.jsonl", "report.json", "report.html"
_PARTIAL = "items.partial.jsonl"
# Files about other items: an earlier run's, removed when new results are swapped in.
_STALE = (_REPORT, _PAGE, ANALYSIS_FILE, PARSERS_FILE)


class RunFolder:
    """The folder that a run writes to.

    Items are written to ``items.partial.jsonl`` batch by batch, so that a run that is stopped
    keeps what it has. An earlier run's results stay as they are until the new ones are complete.
    One run at a time writes to a folder.

    Args:
        folder: Created if it does not exist.
        statistics: Names of the metric's statistics.
        inputs: Files that the run reads.
        page: Collects items for ``report.html``; None for no page.
        keep_text: Whether responses are written; otherwise their SHA-256 is.

    Raises:
        InvalidInputError: The run would overwrite one of its inputs.
        OutputError: The folder can't be created or written, or another run writes to it.
    """

    def __init__(
        self,
        folder: Path,
        statistics: tuple[str, ...],
        *,
        inputs: Iterable[Path] = (),
        page: HtmlPage | None = None,
        keep_text: bool = True,
    ) -> None:
        self.folder = folder
        self.written = 0
        self._statistics = statistics
        self._page = page
        self._keep_text = keep_text
        self._items: IO[str] | None = None
        self._refuse_inputs(inputs)
        with self._errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            # A folder that can't be written is known before a judge is paid.
            probe = folder / f".{_ITEMS}.part"
            probe.touch()
            probe.unlink()
        self._lock = _lock(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    @property
    def partial_path(self) -> Path:
        """Where items are kept until the run is complete."""
        return self.folder / _PARTIAL

    def add(self, batch: BatchResult) -> None:
        """Write a batch of results.

        Raises:
            OutputError: The files can't be written, for example because the disk is full.
        """
        pairs = list(zip(batch.items, batch.results, strict=True))
        lines = [
            item_line(item, result, self._statistics, keep_text=self._keep_text)
            for item, result in pairs
        ]
        with self._errors(self.partial_path):
            items = self._begun()
            items.write("".join(lines))
            items.flush()
        self.written += len(lines)
        for item, result in pairs if self._page is not None else ():
            assert self._page is not None, "the loop is over nothing without a page"
            self._page.add(item, result)

    def finish(self, report: Report) -> None:
        """Write the report and the page, and swap them in together with the items.

        Raises:
            OutputError: The files can't be written, for example because the disk is full.
        """
        with self._errors(self.partial_path):
            self._begun().close()
        staged = {_ITEMS: self._signed_lines(report.signature), _REPORT: [report.to_text()]}
        if self._page is not None:
            staged[_PAGE] = [self._page.render(report)]
        try:
            for name, parts in staged.items():
                self._stage(name, parts)
            with self._errors(self.folder):
                for name in _STALE:
                    (self.folder / name).unlink(missing_ok=True)
                # The report comes last: where it is, everything is.
                for name in sorted(staged, key=_REPORT.__eq__):
                    _part(self.folder, name).replace(self.folder / name)
                self.partial_path.unlink()
        finally:
            for name in staged:
                with suppress(OSError):
                    _part(self.folder, name).unlink(missing_ok=True)

    def close(self) -> None:
        """Close the files and let other runs write to the folder; what was written stays."""
        if self._items is not None:
            with suppress(OSError):
                self._items.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def kept(self, count: int) -> str:
        """Return what a run of ``count`` items that ended early has kept."""
        return (
            f"{self.written} of {count} items are kept in {self.partial_path}; no report was "
            "written, since it would not cover the rest"
        )

    def _begun(self) -> IO[str]:
        """Return the file of items, which is created when it is first needed."""
        if self._items is None:
            self._items = self.partial_path.open("w", encoding="utf-8", newline="\n")
        return self._items

    def _signed_lines(self, signature: str) -> Iterator[str]:
        with self.partial_path.open(encoding="utf-8", newline="\n") as stream:
            for line in stream:
                yield signed(line, signature)

    def _stage(self, name: str, parts: Iterable[str]) -> None:
        with (
            self._errors(self.folder / name),
            _part(self.folder, name).open("w", encoding="utf-8", newline="\n") as stream,
        ):
            stream.writelines(parts)

    def _refuse_inputs(self, inputs: Iterable[Path]) -> None:
        written = {(self.folder / name).resolve() for name in (_ITEMS, _PARTIAL, *_STALE)}
        if own := [path for path in inputs if path.resolve() in written]:
            raise InvalidInputError(
                f"{own[0]} is read by this run and would be overwritten; give another folder than "
                f"{self.folder} for the results"
            )

    @contextmanager
    def _errors(self, path: Path) -> Iterator[None]:
        try:
            yield
        except OSError as err:
            raise OutputError(
                f"can't write {path}: {err.strerror or err}; {self.written} items are kept. "
                "Make room, or give another folder for the results",
                metadata={"path": str(path)},
            ) from err


def _part(folder: Path, name: str) -> Path:
    return folder / f".{name}.part"


def _lock(folder: Path) -> int | None:
    """Lock a folder until the descriptor is closed, or this process ends.

    Raises:
        OutputError: Another run holds the lock.
    """
    try:
        import fcntl
    except ImportError:  # Windows has no such locks.
        return None
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as err:
        os.close(descriptor)
        raise OutputError(
            f"another run writes to {folder}; wait for it to end, or give another folder",
            metadata={"path": str(folder)},
        ) from err
    except OSError:
        # Some network file systems have no locks.
        os.close(descriptor)
        return None
    return descriptor
