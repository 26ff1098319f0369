"""A finished run: its files, which are checked, or its results."""

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
    """A report and the lines of its items."""

    metric: str
    """The run's metric."""
    variant: str
    """Its variant."""
    signature: str
    """Its signature."""
    items: int
    """How many items the report is about."""
    name: str
    """What errors call it."""
    lines: Callable[[], Iterable[Record]]
    """Its items as ``items.jsonl`` has them."""

    @classmethod
    def open(cls, folder: Path) -> Run:
        """The run that left a folder.

        Raises:
            ArchiveError: There is no report, or hallujudge did not write it.
        """
        report = next(iter(read_records(folder / "report.json")), None)
        values = report.values if report is not None else {}
        texts = {name: values.get(name) for name in ("metric", "variant", "signature")}
        coverage = values.get("coverage")
        items = coverage.get("items") if isinstance(coverage, Mapping) else None
        if not all(isinstance(text, str) for text in texts.values()) or not isinstance(items, int):
            raise ArchiveError(
                f"{folder / 'report.json'}: no report of hallujudge score: metric, variant, "
                "signature and coverage are looked for"
            )
        path = folder / "items.jsonl"
        return cls(
            items=items,
            name=str(path),
            lines=lambda: read_records(path),
            **{name: str(text) for name, text in texts.items()},
        )

    @classmethod
    def of(cls, report: Report, results: Iterable[ItemResult]) -> Run:
        """The run of a report, with the results that it sums up."""

        def lines() -> Iterator[Record]:
            for position, result in enumerate(results):
                place = f"result {position} ({result.id!r:.60})"
                yield Record(values=result.to_json(), position=position, place=place)

        return cls(
            metric=report.metric,
            variant=report.variant,
            signature=report.signature,
            items=report.coverage.items,
            name="the results",
            lines=lines,
        )

    def scored(self) -> Iterator[Record]:
        """The lines of scored items.

        Raises:
            ArchiveError: The items are not those of the report, or a line can't be read.
        """
        return (r for r in self.items_of_report() if r.values["outcome"] == Outcome.SCORED.value)

    def items_of_report(self) -> Iterator[Record]:
        """The lines of all items.

        Raises:
            ArchiveError: See :meth:`scored`.
        """
        count = 0
        for record in self.lines():
            count += 1
            if (outcome := record.values.get("outcome")) not in _OUTCOMES:
                raise ArchiveError(f"{record.place}: the outcome is {outcome!r:.60}; is it a run?")
            yield record
        if count != self.items:
            raise ArchiveError(
                f"{self.name}: {count} items, and the report is about {self.items}; score again, "
                "or give the report its own items"
            )
