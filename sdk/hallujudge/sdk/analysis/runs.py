"""A finished run, from its files or its results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hallujudge.metrics import ItemResult, Outcome, Report

from ..archives.records import Record, read_records
from ..errors import ArchiveError

__all__ = ["Run"]

_OUTCOMES = frozenset(outcome.value for outcome in Outcome)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run's report and the records of its items."""

    metric: str
    """The run's metric."""
    variant: str
    """Its variant."""
    signature: str
    """Its signature."""
    items: int
    """How many items the report covers."""
    name: str
    """Name of the items in error messages."""
    source: str
    """Name of the report in error messages."""
    lines: Callable[[], Iterable[Record]]
    """Items of the run as records of ``items.jsonl``."""

    @classmethod
    def open(cls, folder: Path) -> Run:
        """Return the run that wrote a folder.

        Raises:
            ArchiveError: The folder has no report, or hallujudge did not write it.
        """
        if not folder.is_dir():
            raise ArchiveError(f"{folder}: not a folder; give the folder of a run")
        report = next(iter(read_records(folder / "report.json")), None)
        values = report.values if report is not None else {}
        texts = {name: values.get(name) for name in ("metric", "variant", "signature")}
        coverage = values.get("coverage")
        items = coverage.get("items") if isinstance(coverage, Mapping) else None
        if not all(isinstance(text, str) for text in texts.values()) or not isinstance(items, int):
            raise ArchiveError(
                f"{folder / 'report.json'}: not a report that hallujudge score wrote: it needs "
                "metric, variant, signature and coverage"
            )
        path = folder / "items.jsonl"
        return cls(
            items=items,
            name=str(path),
            source=str(folder / "report.json"),
            lines=lambda: read_records(path),
            **{name: str(text) for name, text in texts.items()},
        )

    @classmethod
    def of(cls, report: Report, results: Iterable[ItemResult]) -> Run:
        """Return the run of a report and its results."""

        def lines() -> Iterator[Record]:
            for position, result in enumerate(results):
                place = f"result {position} ({result.id!r:.60})"
                yield Record(values=result.to_json(), position=position, place=place)

        return cls(
            metric=report.metric,
            variant=report.variant,
            signature=report.signature,
            items=report.coverage.items,
            source="the report",
            name="the results",
            lines=lines,
        )

    def scored(self) -> Iterator[Record]:
        """Return the records of scored items.

        Raises:
            ArchiveError: The items do not belong to the report, or a line can't be read.
        """
        return (r for r in self.items_of_report() if r.values["outcome"] == Outcome.SCORED.value)

    def items_of_report(self) -> Iterator[Record]:
        """Return the records of all items.

        Raises:
            ArchiveError: See :meth:`scored`.
        """
        count = 0
        for record in self.lines():
            count += 1
            if (outcome := record.values.get("outcome")) not in _OUTCOMES:
                raise ArchiveError(
                    f"{record.place}: the outcome is {outcome!r:.60}; give a folder that "
                    "hallujudge score wrote"
                )
            yield record
        if count != self.items:
            raise ArchiveError(
                f"{self.name}: {count} items, but the report covers {self.items}; score again, "
                "or pass the items of this report"
            )
