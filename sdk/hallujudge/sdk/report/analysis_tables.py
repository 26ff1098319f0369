"""The tables that analyses make, and an analysis of some runs as a whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from msgspec import convert

from hallujudge.metrics.errors import choose_from

from ..errors import ArchiveError, InvalidInputError
from .charts import Chart, chart_from, words_of
from .report_text import ABSENT, clean, cut
from .table_pages import PAGE_FORMATS, Cell, Grid, Page, Shown

# Longer tables are cut where several are shown together.
_SHOWN_ROWS = 40
_CELL_CHARS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How rows become columns, for a table that is shown as its paper prints it."""

    column: str
    """Column whose values become columns, such as ``k``; without it the table stays as it is.

    Columns before it, and those of texts, name the rows.
    """
    values: tuple[str, ...]
    """Columns with a cell for each of them."""
    headings: tuple[str, ...]
    """What the paper calls each of these."""
    rows: str = ""
    """Name of the column of headings if each has rows of its own; empty for side by side."""
    mark: str = "@"
    """What is before the column's value in a heading, such as ``@10``; empty for names."""

    def to_json(self) -> dict[str, Any]:
        """Return the layout as plain values."""
        values = asdict(self)
        # An empty mark is not the default one, and must be kept.
        return {name: value for name, value in values.items() if value or name == "mark"}

    def keys_and_rows(
        self, rows: Sequence[Mapping[str, Cell]]
    ) -> tuple[tuple[tuple[str, str, str], ...], list[tuple[Cell, ...]]]:
        """Return each column's key with its upper and its lower heading, and the rows."""
        names = tuple(rows[0])
        at = names.index(self.column)
        others = [name for name in names if name != self.column and name not in self.values]
        texts = {name for name in others if all(isinstance(row[name], str) for row in rows)}
        # Texts name a row: they come before its values wherever the analysis has them.
        before = [name for name in others if name in names[:at] or name in texts]
        after = [name for name in others if name not in before]
        places = list(dict.fromkeys(row[self.column] for row in rows))
        found: dict[tuple[Cell, ...], dict[Cell, Mapping[str, Cell]]] = {}
        for row in rows:
            key = tuple(row[name] for name in (*before, *after))
            found.setdefault(key, {})[row[self.column]] = row
        named = list(zip(self.values, self.headings, strict=True))
        # Without a name for rows, all values share the rows.
        groups = [[each] for each in named] if self.rows else [named]
        columns = [
            (f"@{place}", "", f"{self.mark}{place}")
            if self.rows
            else (f"{value}@{place}", heading, f"{self.mark}{place}")
            for value, heading in groups[0]
            for place in places
        ]
        made = [
            (
                *((group[0][1],) if self.rows else ()),
                *key[: len(before)],
                *(each.get(place, {}).get(value) for value, _ in group for place in places),
                *key[len(before) :],
            )
            for group in groups
            for key, each in found.items()
        ]
        first = (self.rows, *before) if self.rows else before
        left, right = (
            tuple((name, "", words_of(name)) for name in some) for some in (first, after)
        )
        return (*left, *columns, *right), made


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisTable:
    """One analysis."""

    name: str
    """The table's name, such as ``trend``."""
    source: str
    """Table or figure of the paper, or a note that the analysis is ours."""
    rows: tuple[Mapping[str, Cell], ...]
    """Rows with the same keys in the same order."""
    chart: Chart | None = None
    """How the table is drawn; None where numbers say as much."""
    spread: Spread | None = None
    """How the table is shown as its paper prints it; None for row by row."""

    def grid(self, *, whole: bool = False) -> Grid:
        """Return the table as it is shown, and all of its values.

        Args:
            whole: Whether all rows are shown, and not the first ones of a long table only.
        """
        columns, values = self._columns_and_values()
        shown = values if whole else values[:_SHOWN_ROWS]
        cut_off = (
            f"; the first {len(shown)} of {len(values):,} rows: --table {self.name} shows all"
            if len(shown) < len(values)
            else ""
        )
        over = tuple(heading for _, heading, _ in columns)
        return Grid(
            title=f"{words_of(self.name)} ({self.source}{cut_off})",
            headings=tuple(heading for _, _, heading in columns),
            over=over if any(over) else (),
            rows=tuple(tuple(map(_shown, row)) for row in shown),
            keys=tuple(key for key, _, _ in columns),
            values=tuple(values),
            chart=self.chart,
            # Charts are drawn from the rows as they were: a spread table has no column of its
            # values.
            charted=self.rows if self.spread else (),
        )

    def _columns_and_values(
        self,
    ) -> tuple[tuple[tuple[str, str, str], ...], Sequence[tuple[Cell, ...]]]:
        """Return each column's key with its upper and its lower heading, and the rows."""
        if self.spread is not None and self.rows and self.spread.column in self.rows[0]:
            return self.spread.keys_and_rows(self.rows)
        keys = tuple(self.rows[0]) if self.rows else ()
        rows = [tuple(row[key] for key in keys) for row in self.rows]
        return tuple((key, "", words_of(key)) for key in keys), rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis(Shown):
    """The analyses of some runs."""

    schema = "analysis"

    runs: tuple[Mapping[str, str], ...]
    """Name, metric, variant and signature of each run."""
    tables: tuple[AnalysisTable, ...]
    """The analyses that the runs allow, as tables."""
    notes: tuple[str, ...] = ()
    """Reasons for missing or partial analyses."""
    whole: bool = False
    """Whether tables are shown with all rows; else with the first ones."""

    def __getitem__(self, name: str) -> AnalysisTable:
        """Return the table with a name.

        Raises:
            KeyError: No table has that name.
        """
        return {table.name: table for table in self.tables}[name]

    def only(self, names: Sequence[str]) -> Analysis:
        """Return the analysis with some tables alone, which are shown with all rows.

        Raises:
            InvalidInputError: No table has one of the names.
        """
        known = [table.name for table in self.tables]
        if unknown := [name for name in names if name not in known]:
            there = choose_from(unknown[0], known) if known else "leave --table out to see why"
            raise InvalidInputError(f"no table has the name {unknown[0]!r:.60}; {there}")
        tables = tuple(self[name] for name in dict.fromkeys(names))
        return Analysis(runs=self.runs, tables=tables, notes=self.notes, whole=True)

    def page(self) -> Page:
        """Return the tables that have rows."""
        metrics = dict.fromkeys(f"{run['metric']} ({run['variant']})" for run in self.runs)
        return Page(
            title=f"{', '.join(metrics)}: analyses",
            grids=tuple(table.grid(whole=self.whole) for table in self.tables if table.rows),
            notes=self.notes,
            sources=dict(self._sources()),
        )

    def _sources(self) -> Iterator[tuple[str, str]]:
        """Yield the name and the signature of each run; runs of two metrics may share a name."""
        names = Counter(run["name"] for run in self.runs)
        for run in self.runs:
            name, metric = run["name"], run["metric"]
            yield (name if names[name] == 1 else f"{name} ({metric})"), run["signature"]

    def files(self) -> dict[str, str]:
        """Return all tables in all formats: name of each file -> its text.

        ``analysis.json`` and ``analysis.html`` have all tables; each also has a file of its own as
        CSV, with all digits, and as LaTeX, both with all rows.
        """
        page = self.page()
        made = {"analysis.json": self.to_text(), "analysis.html": PAGE_FORMATS["html"](page)}
        for table in (table for table in self.tables if table.rows):
            alone = replace(page, grids=(table.grid(whole=True),), notes=())
            made[f"{table.name}.csv"] = PAGE_FORMATS["csv"](alone)
            made[f"{table.name}.tex"] = PAGE_FORMATS["latex"](alone)
        return made

    def to_json(self) -> dict[str, Any]:
        """Return the content of ``analysis.json``."""
        return {
            "runs": [dict(run) for run in self.runs],
            "analyses": {
                table.name: {
                    "source": table.source,
                    "rows": [dict(row) for row in table.rows],
                    **({"chart": table.chart.to_json()} if table.chart else {}),
                    **({"spread": table.spread.to_json()} if table.spread else {}),
                }
                for table in self.tables
            },
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any], where: str) -> Analysis:
        """Return the analysis of an ``analysis.json``.

        Raises:
            ArchiveError: It is not one that hallujudge wrote.
        """
        with ArchiveError.of_content(
            f"{where}: not an analysis that hallujudge wrote", "analyze the run again"
        ):
            return cls(
                runs=tuple({key: str(run[key]) for key in run} for run in values["runs"]),
                tables=tuple(
                    AnalysisTable(
                        name=str(name),
                        source=str(table["source"]),
                        rows=tuple(_checked_rows(table["rows"])),
                        chart=chart_from(table.get("chart")),
                        spread=convert(table.get("spread"), Spread | None),
                    )
                    for name, table in values["analyses"].items()
                ),
                notes=tuple(map(str, values["notes"])),
            )


def _checked_rows(rows: Iterable[Mapping[str, object]]) -> Iterator[dict[str, Cell]]:
    shape = Counter[tuple[str, ...]]()
    for row in rows:
        shape[tuple(row)] += 1
        # Every format takes the columns of the first row for those of all.
        if len(shape) > 1 or not all(
            value is None or isinstance(value, str | int | float) for value in row.values()
        ):
            raise TypeError(f"a row is {row!r:.80}")
        yield dict(row)  # type: ignore[arg-type]  # checked above


def _shown(value: Cell) -> str:
    if value is None:
        return ABSENT
    # A truth value is an int too, so that this test comes first.
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4f}" if isinstance(value, float) else cut(clean(value), _CELL_CHARS)
