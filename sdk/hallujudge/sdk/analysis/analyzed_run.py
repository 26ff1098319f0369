"""A finished run, the options of its analyses and their tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from hallujudge.metrics import ItemResult, Outcome, Report

from ..archives.records import Record, read_records
from ..errors import ArchiveError, InvalidInputError


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisOptions:
    """Settings of the analyses; each is read by one metric's analyses."""

    words: tuple[int, ...] = ()
    """Tri-HE's trend: word counts. Empty for steps of ten up to the last claim."""
    share: float = 0.2
    """Tri-HE's frequent pairs: the share of object pairs that counts as frequent."""
    companions: int = 5
    """Mementos: how many companions of a behaviour count as usual."""
    behavior_graphs: Mapping[str, str] = field(default_factory=dict)
    """Mementos: domain -> graph that maps behaviours to roots, a shipped name or a file; the
    empty domain is any other. Empty for the shipped graphs, as in scoring."""

    def __post_init__(self) -> None:
        if any(number < 1 for number in self.words):
            raise InvalidInputError(f"words are {list(self.words)}; give whole numbers above 0")
        if not 0 < self.share <= 1:
            raise InvalidInputError(
                f"the share of pairs is {self.share}; give a number above 0 and at most 1"
            )
        if self.companions < 1:
            raise InvalidInputError(f"companions are {self.companions}; give at least 1")


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


Cell: TypeAlias = str | int | float | None
"""A value of a table; None if it is undefined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisTable:
    """One analysis."""

    name: str
    """The table's name, such as ``trend``."""
    source: str
    """Table or figure of the paper, or a note that the analysis is ours."""
    rows: tuple[Mapping[str, Cell], ...]
    """Rows with the same keys in the same order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """The analyses of one run."""

    metric: str
    """The run's metric."""
    variant: str
    """Its variant."""
    signature: str
    """The signature of the run's scores."""
    tables: tuple[AnalysisTable, ...]
    """The analyses that the run's items allow, as tables."""
    notes: tuple[str, ...] = ()
    """Reasons for missing or partial analyses."""

    def __getitem__(self, name: str) -> AnalysisTable:
        """Return the table with a name.

        Raises:
            KeyError: No table has that name.
        """
        for table in self.tables:
            if table.name == name:
                return table
        raise KeyError(name)

    def to_json(self) -> dict[str, object]:
        """Return the content of ``analysis.json``."""
        return {
            "metric": self.metric,
            "variant": self.variant,
            "signature": self.signature,
            "analyses": {
                table.name: {"source": table.source, "rows": [dict(row) for row in table.rows]}
                for table in self.tables
            },
            "notes": list(self.notes),
        }

    def to_text(self) -> str:
        """Return the content of ``analysis.json`` as text that ends with a line feed."""
        return json.dumps(self.to_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
