"""What a run leaves: ``items.jsonl`` as it goes, ``report.json`` and pages at its end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from hallujudge.metrics import Outcome, Report

from ..analysis import ANALYSIS_FILE
from ..errors import OutputError

if TYPE_CHECKING:
    from ..backends.base import BatchResult
    from ..report import HtmlPage

__all__ = ["OutputFolder"]

_ITEMS, _REPORT, _PAGE = "items.jsonl", "report.json", "report.html"


class OutputFolder:
    """The folder that a run writes to.

    Items are written batch by batch, so that a run that is stopped keeps what it has. Results of an
    earlier run stay until there is a first batch: a server that is away must not cost them. Then
    its report and analysis are removed first, since beside other items they would be lies.

    Args:
        folder: Made where it does not exist.
        page: Collects items for ``report.html``; None for no page.

    Raises:
        OutputError: The folder can't be made or written.
    """

    def __init__(self, folder: Path, page: HtmlPage | None = None) -> None:
        self.folder = folder
        self.items_path = folder / _ITEMS
        self.written = 0
        self.unscored = 0
        self._page = page
        with self._errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            # A folder that can't be written is known before a judge is paid.
            probe = folder / f".{_ITEMS}.part"
            probe.touch()
            probe.unlink()
        self._items: IO[str] | None = None

    def add(self, batch: BatchResult) -> None:
        """Writes a batch of results.

        Raises:
            OutputError: The disk is full, or gone.
        """
        lines = [
            json.dumps(result.to_json(), ensure_ascii=False, allow_nan=False) + "\n"
            for result in batch.results
        ]
        with self._errors(self.items_path):
            items = self._begun()
            items.write("".join(lines))
            items.flush()
        self.written += len(lines)
        self.unscored += sum(r.outcome is Outcome.UNSCORED for r in batch.results)
        if self._page is not None:
            for item, result in zip(batch.items, batch.results, strict=True):
                self._page.add(item, result)

    def finish(self, report: Report) -> None:
        """Writes the report and the page.

        Raises:
            OutputError: The disk is full, or gone.
        """
        with self._errors(self.items_path):
            self._begun()
        self.close()
        self._write(_REPORT, report.to_text())
        if self._page is not None:
            self._write(_PAGE, self._page.render(report))

    def close(self) -> None:
        """Closes ``items.jsonl``; what was flushed stays, whatever happens here."""
        with self._errors(self.items_path):
            if self._items is not None:
                self._items.close()

    def _begun(self) -> IO[str]:
        """The file of items, emptied of an earlier run's when it is first asked for."""
        if self._items is None:
            for name in (_REPORT, _PAGE, ANALYSIS_FILE):
                (self.folder / name).unlink(missing_ok=True)
            self._items = self.items_path.open("w", encoding="utf-8", newline="\n")
        return self._items

    def _write(self, name: str, text: str) -> None:
        # Written beside and renamed: a reader sees the whole report or none.
        path, part = self.folder / name, self.folder / f".{name}.part"
        with self._errors(path):
            try:
                part.write_text(text, encoding="utf-8", newline="\n")
                part.replace(path)
            finally:
                part.unlink(missing_ok=True)

    @contextmanager
    def _errors(self, path: Path) -> Iterator[None]:
        try:
            yield
        except OSError as err:
            raise OutputError(
                f"can't write {path}: {err.strerror or err}; {self.written} items are kept. "
                "Make room or give another folder with --out",
                metadata={"path": str(path)},
            ) from err
