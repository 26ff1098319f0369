"""Finished runs, the options of their analyses, and what a family declares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from hallujudge.judge_service.engine.spec import metric_of
from hallujudge.metrics import Metric, Outcome, Report
from hallujudge.metrics.errors import choose_from
from hallujudge.sdk.archives.records import Record
from hallujudge.sdk.comparison.named_runs import RunSource, check_distinct, run_keys, run_name
from hallujudge.sdk.errors import ArchiveError, InvalidInputError
from hallujudge.sdk.report.analysis_tables import AnalysisTable
from hallujudge.sdk.report.table_pages import Cell
from hallujudge.sdk.runs.manifest import ITEMS
from hallujudge.sdk.runs.result_files import is_counted, records_of
from hallujudge.sdk.runs.run_report import RunReport
from hallujudge.sdk.runs.stored_runs import read_run

from ..analysis_options import AnalysisOption, OptionValue

_OUTCOMES = frozenset(outcome.value for outcome in Outcome)


def checked_options(
    given: Mapping[str, OptionValue], declared: Sequence[AnalysisOption]
) -> dict[str, Any]:
    """Return the given options, and the defaults of the others.

    Raises:
        InvalidInputError: No analysis of the runs has such an option, or a number is wrong.
    """
    known = {option.name: option for option in declared}
    values = {name: option.default for name, option in known.items()}
    for name, value in given.items():
        if name not in known:
            has = choose_from(name, known) if known else "theirs have no options"
            raise InvalidInputError(
                f"no analysis of these runs has the option {name} (given {str(value)!r:.60}); {has}"
            )
        # From Python, options come without the checks of the command line.
        if known[name].kind == "count" and not (isinstance(value, int) and value >= 1):
            raise InvalidInputError(
                f"the option {name} is {value!r:.60}; give a whole number of at least 1"
            )
        # From Python, one text may be given alone; it is not a list of letters.
        if known[name].kind == "texts" and isinstance(value, str | Path):
            value = (str(value),)
        values[name] = value
    return values


# Each number is a row of a table.
_MOST_CUT_OFFS = 1000


def cut_offs(option: str, text: str) -> tuple[int, ...]:
    """Return the numbers in a text such as ``10,20,40``, in order and each once.

    Args:
        option: The name of the option.
        text: Its value.

    Raises:
        InvalidInputError: They are not whole numbers above 0, or too many.
    """
    try:
        numbers = sorted({int(part) for part in text.split(",")}) if text else []
    except ValueError as err:
        raise InvalidInputError(
            f"the option {option} is {text!r:.80}; give whole numbers with commas, such as 10,20,40"
        ) from err
    if len(numbers) > _MOST_CUT_OFFS or any(number < 1 for number in numbers):
        raise InvalidInputError(
            f"the option {option} is {text!r:.80}; give at most {_MOST_CUT_OFFS} whole numbers "
            "above 0"
        )
    return tuple(numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyzedRun:
    """A finished run: its report and the records of its items, read whenever they are iterated."""

    keys: Mapping[str, str]
    """Keys of its name with their values, such as ``model`` and ``prompt``."""
    report: Report
    metric_object: Metric
    """The metric, as the run used it."""
    source: str
    """Name of the items in error messages."""
    folder: Path | None
    """The folder of the run; None for a report in memory."""
    lines: Callable[[], Iterable[Record]] = field(repr=False)
    """Yields the items as records of ``items.jsonl``."""
    kept: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """What one analysis read and another one takes, since to read the items takes longest."""

    @classmethod
    def of(cls, source: RunSource, keys: Mapping[str, str]) -> AnalyzedRun:
        """Return a run that can be analyzed.

        Raises:
            ArchiveError: The folder does not hold a complete run.
            InvalidInputError: The report does not hold all of its items.
        """
        if isinstance(source, RunReport):
            return cls._in_memory(source, keys)
        run = read_run(source)
        path = run.folder / ITEMS
        return cls(
            keys=keys,
            report=run.report,
            metric_object=run.metric,
            source=str(path),
            folder=run.folder,
            # With the signature, so that items of another run in the same folder are refused.
            lines=lambda: records_of(path, run.signature),
        )

    @classmethod
    def _in_memory(cls, report: RunReport, keys: Mapping[str, str]) -> AnalyzedRun:
        # An analysis of the items that were kept would look like one of the whole run.
        if not report.holds_items:
            raise InvalidInputError(
                f"the report holds {len(report.items)} of its {report.coverage.items} items; "
                "score with keep_items=True to analyze it"
            )

        def lines() -> Iterator[Record]:
            for position, item in enumerate(report.items):
                place = f"item {position} ({item.id!r:.60})"
                yield Record(values=item.result.to_json(), position=position, place=place)

        return cls(
            keys=keys,
            report=report,
            # A report has the settings of its metric, from which the metric is made again.
            metric_object=metric_of(report.metric, report.variant, report.settings),
            source="the report's items",
            folder=None,
            lines=lines,
        )

    @property
    def metric(self) -> str:
        """The name of the run's metric."""
        return self.report.metric

    @property
    def variant(self) -> str:
        """The run's variant."""
        return self.report.variant

    @property
    def signature(self) -> str:
        """The run's signature."""
        return self.report.signature

    @property
    def name(self) -> str:
        """The run's name: the values of its keys."""
        return run_name(self.keys)

    @property
    def label(self) -> tuple[str, str]:
        """The metric and the name, which no other run has."""
        return self.metric, self.name

    def scored(self) -> Iterator[Record]:
        """Yield the records of scored items.

        Raises:
            ArchiveError: The items do not belong to the report, or a line can't be read.
        """
        return (r for r in self.items() if r.values["outcome"] == Outcome.SCORED.value)

    def items(self) -> Iterator[Record]:
        """Yield the records of all items.

        Raises:
            ArchiveError: See :meth:`scored`.
        """
        count = 0
        for record in self.lines():
            count += is_counted(record.values)
            outcome = record.values.get("outcome")
            if not isinstance(outcome, str) or outcome not in _OUTCOMES:
                raise ArchiveError(
                    f"{record.place}: the outcome is {outcome!r:.60}; give a folder that "
                    "hallujudge score wrote"
                )
            yield record
        # A file that was cut off between two lines reads like a shorter run; only the count shows
        # it.
        if count != self.report.coverage.items:
            raise ArchiveError(
                f"{self.source}: {count} items, but the report covers "
                f"{self.report.coverage.items}; score again, or pass the items of this report"
            )


def analyzed_runs(sources: Sequence[RunSource], names: Sequence[str]) -> list[AnalyzedRun]:
    """Return runs that can be analyzed, with the keys of their names.

    Raises:
        ArchiveError: A folder does not hold a complete run.
        InvalidInputError: There are no runs, or the names do not fit them.
    """
    if not sources:
        raise InvalidInputError("no run is given; give the folder of a run")
    keys = run_keys(sources, names)
    runs = [AnalyzedRun.of(source, each) for source, each in zip(sources, keys, strict=True)]
    # A model's runs of POPE and of CHAIR may share its name, and are analyzed together.
    for metric in dict.fromkeys(run.metric for run in runs):
        check_distinct([run.name for run in runs_of(runs, metric)])
    return runs


def evidence_of(record: Record, key: str) -> Mapping[str, object]:
    """Return the evidence of a line.

    Args:
        record: The line.
        key: A key that the metric's evidence always has.

    Raises:
        ArchiveError: The line is not one that the metric writes.
    """
    evidence = record.values.get("evidence")
    if not isinstance(evidence, Mapping) or (evidence and key not in evidence):
        raise ArchiveError(f"{record.place}: no {key!r} in the evidence; score the run again")
    return evidence


def reading(record: Record, metric: str) -> AbstractContextManager[None]:
    """Return the block in which a line is read that a run of a metric wrote.

    Raises:
        ArchiveError: The line lacks a value, or has one of another type.
    """
    return ArchiveError.of_content(
        f"{record.place}: not a line that a run of {metric} writes", "score again"
    )


def cells_of(found: object, *names: str) -> dict[str, Cell]:
    """Return cells whose columns have the names of a result's fields."""
    return {name: getattr(found, name) for name in names}


def runs_of(runs: Iterable[AnalyzedRun], *metrics: str) -> list[AnalyzedRun]:
    """Return the runs of some metrics."""
    return [run for run in runs if run.metric in metrics]


Tables: TypeAlias = "tuple[list[AnalysisTable], list[str]]"
"""Tables, and the reasons for those that are missing or partial."""


def joined(found: Iterable[Tables]) -> Tables:
    """Return the tables of several analyses together, and the notes on all of them."""
    made = list(found)
    return [each for tables, _ in made for each in tables], [n for _, notes in made for n in notes]


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyAnalyses:
    """The analyses of a family, as its module in this package declares them."""

    metrics: tuple[str, ...]
    """The metrics whose runs they are of."""
    make: Callable[[Sequence[AnalyzedRun], Mapping[str, Any]], Tables]
    """Takes all runs that were given, those of other metrics too."""
    options: tuple[AnalysisOption, ...] = ()


def run_by_run(
    make: Callable[[AnalyzedRun, Mapping[str, Any]], Tables], *metrics: str
) -> Callable[[Sequence[AnalyzedRun], Mapping[str, Any]], Tables]:
    """Return a function that analyzes each run alone and joins tables of the same name.

    Where several runs are given, each row begins with the keys of its run.

    Args:
        make: Analyzes one run.
        metrics: The metrics whose runs it takes.
    """

    def made(runs: Sequence[AnalyzedRun], options: Mapping[str, Any]) -> Tables:
        own = runs_of(runs, *metrics)
        by_name: dict[str, AnalysisTable] = {}
        notes: list[str] = []
        for run in own:
            # A single run needs no columns that tell it from others.
            keys = run.keys if len(own) > 1 else {}
            tables, problems = make(run, options)
            notes += [f"{run.name}: {problem}" if keys else problem for problem in problems]
            for table in tables:
                _join(by_name, table, keys)
        return list(by_name.values()), notes

    return made


def with_keys(keys: Mapping[str, Cell], row: Mapping[str, Cell], table: str) -> dict[str, Cell]:
    """Return a row that begins with the keys of its run's name.

    Args:
        keys: The keys with their values.
        row: The other cells.
        table: Name of the table.

    Raises:
        InvalidInputError: A key has the name of another column, which would replace its value.
    """
    if both := sorted(keys.keys() & row.keys()):
        raise InvalidInputError(
            f"the table {table} would have two columns {both[0]!r:.40}, since a key of a run's "
            "name or a group has the name of another column; give it another name"
        )
    return {**keys, **row}


def _join(by_name: dict[str, AnalysisTable], table: AnalysisTable, keys: Mapping[str, str]) -> None:
    before = by_name.get(table.name)
    rows = tuple(with_keys(keys, row, table.name) for row in table.rows)
    # Without the keys, the points of all runs would be drawn as one series.
    chart = table.chart.split_by(tuple(keys)) if table.chart and keys else table.chart
    by_name[table.name] = replace(table, rows=(before.rows if before else ()) + rows, chart=chart)


def described(run: AnalyzedRun) -> dict[str, str]:
    """Return what an analysis says of a run."""
    named = {"name": run.name, "metric": run.metric, "variant": run.variant}
    return {**named, "signature": run.signature}
