"""The files of a finished run, read as the input that they are: checked, and named when wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..archives._records import Record, read_records
from ..errors import ArchiveError

__all__ = ["RunFolder"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFolder:
    """A folder that ``hallujudge score`` left."""

    metric: str
    """The run's metric."""
    variant: str
    """Its reading."""
    signature: str
    """Its signature."""
    items: int
    """How many items the report is about."""
    path: Path
    """The folder."""

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """The folder of a finished run.

        Raises:
            ArchiveError: There is no report, or it is none of ours.
        """
        report = next(iter(read_records(path / "report.json")), None)
        values = report.values if report is not None else {}
        texts = {name: values.get(name) for name in ("metric", "variant", "signature")}
        coverage = values.get("coverage")
        items = coverage.get("items") if isinstance(coverage, Mapping) else None
        if not all(isinstance(text, str) for text in texts.values()) or not isinstance(items, int):
            raise ArchiveError(
                f"{path / 'report.json'}: no report of hallujudge score: metric, variant, "
                "signature and coverage are looked for"
            )
        return cls(path=path, items=items, **{name: str(text) for name, text in texts.items()})

    def scored(self) -> Iterator[Record]:
        """The lines of scored items.

        Raises:
            ArchiveError: The items are not those of the report, or a line can't be read.
        """
        lines = 0
        path = self.path / "items.jsonl"
        for record in read_records(path):
            lines += 1
            if record.values.get("outcome") == "scored":
                yield record
        if lines != self.items:
            raise ArchiveError(
                f"{path} has {lines} items and the report beside it is about {self.items}; "
                "score again"
            )
