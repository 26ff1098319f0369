"""Cells of a paper's table: scores with their keys, laid out in rows and columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hallujudge.metrics import Metric, Report, Score, ScoreDefinition

from ..archives.json_files import named
from ..errors import InvalidInputError
from ..report.report_text import ABSENT, show_number
from ..report.table_pages import Grid
from .compared_runs import RunData
from .named_runs import MODEL

SCORE = "score"
BEST = "The best model of each score is in bold."
"""What marks of tables mean."""

_DIGITS, _PERCENT_DIGITS = 4, 1
_MOST_DIGITS = 12
_Key = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLayout:
    """What a table shows, and how."""

    rows: Sequence[str] = (MODEL,)
    """Keys of the rows: ``model``, ``metric``, ``score``, a key of the runs' names, or a field that
    the items carry, such as ``category``."""
    columns: Sequence[str] = (SCORE,)
    """Keys of the columns."""
    percent: bool = False
    """Whether fractions are shown in percent."""
    digits: int | None = None
    """Decimals that are shown; None for 4, in percent for 1."""
    intervals: bool = False
    """Whether cells show the intervals."""
    tests: bool = True
    """Whether models are tested against the best one."""

    def check(self) -> None:
        """Refuse a layout that is not a table's.

        Raises:
            InvalidInputError: A key is given twice or none is given, or digits is out of range.
        """
        if self.digits is not None and not 0 <= self.digits <= _MOST_DIGITS:
            raise InvalidInputError(
                f"digits is {self.digits}; give a number from 0 to {_MOST_DIGITS}"
            )
        if not self.rows or not self.columns:
            raise InvalidInputError("rows and columns need a key each, such as model and score")
        if twice := [key for key, n in Counter((*self.rows, *self.columns)).items() if n > 1]:
            raise InvalidInputError(f"the key {twice[0]!r:.40} is given twice; give it once")

    def text(self, score: Score, unit: str) -> str:
        """Return the value of a score as the table shows it."""
        # Lengths and counts are never percentages.
        factor = 100 if self.percent and unit == "fraction" else 1
        digits = self.digits
        if digits is None:
            digits = _PERCENT_DIGITS if self.percent else _DIGITS

        def number(value: float | None) -> str:
            return show_number(None if value is None else value * factor, digits=digits)

        if not self.intervals or score.ci_low is None or score.ci_high is None:
            return number(score.value)
        return f"{number(score.value)} [{number(score.ci_low)}, {number(score.ci_high)}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCell:
    """A score of a model."""

    keys: Mapping[str, str]
    """The keys of its row and column with their values."""
    score: str
    """Name of the score."""
    value: float | None
    """The score; None if it is undefined."""
    ci_low: float | None
    """Lower end of its interval; None without one."""
    ci_high: float | None
    """Upper end of its interval."""
    n: int
    """How many items it is based on."""
    unit: str
    """``fraction``, or the counted noun."""
    text: str
    """The cell as it is shown, without marks."""
    best: bool = False
    """Whether no other model has a better value."""
    p: float | None = None
    """P-value of the test against the best model; None for the best, and without a test."""
    p_corrected: float | None = None
    """The same after Holm's correction for all tests of the table."""
    differs: bool = False
    """Whether the corrected p-value is at most 1 minus the confidence."""
    notes: tuple[str, ...] = ()
    """What limits the use of the value, as the report of its run says."""


class Entry(NamedTuple):
    """A score of one run, or of a part of it, before it has a place in a table."""

    keys: Mapping[str, str]
    """All its keys, those that the table does not show included."""
    score: Score
    definition: ScoreDefinition
    data: RunData | None
    """The items behind it; None if they are not at hand."""
    notes: tuple[str, ...] = ()
    """The notes of its run's report."""

    @property
    def rivals(self) -> tuple[tuple[str, str], ...]:
        """What all entries have in common that are compared with this one."""
        return tuple((key, value) for key, value in self.keys.items() if key != MODEL)


class Tested(NamedTuple):
    """The test of a model against the best one."""

    p: float
    p_corrected: float
    differs: bool


def rivals_of(entries: Sequence[Entry]) -> list[list[int]]:
    """Return the places of the entries that differ in the model alone."""
    groups: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for place, entry in enumerate(entries):
        groups.setdefault(entry.rivals, []).append(place)
    return [places for places in groups.values() if len(places) > 1]


def best_of(entries: Sequence[Entry], rivals: Sequence[int]) -> list[int]:
    """Return the places of the best values; none for a score without a better end."""
    direction = entries[rivals[0]].definition.direction
    values = {p: v for p in rivals if (v := entries[p].score.value) is not None}
    # Of equal values, all would be the best, and bold would tell nothing.
    if direction == "neither" or len(set(values.values())) < 2:
        return []
    best = (max if direction == "higher" else min)(values.values())
    return [place for place, value in values.items() if value == best]


def table_cells(
    entries: Sequence[Entry],
    layout: TableLayout,
    tested: Mapping[int, Tested] | None = None,
) -> Iterator[TableCell]:
    """Yield the cells of a table, with the best models marked.

    Args:
        entries: The scores.
        layout: What the table shows.
        tested: Place of an entry -> its test against the best model.

    Raises:
        InvalidInputError: Two values have one cell.
    """
    best = {place for rivals in rivals_of(entries) for place in best_of(entries, rivals)}
    shown = (*layout.rows, *layout.columns)
    seen: dict[_Key, Entry] = {}
    for place, entry in enumerate(entries):
        key = tuple(entry.keys.get(each, "") for each in shown)
        other = seen.setdefault(key, entry)
        # One of two scores would replace the other without a word.
        if other is not entry:
            raise _same_cell(other, entry)
        test = (tested or {}).get(place)
        yield TableCell(
            keys=dict(zip(shown, key, strict=True)),
            score=entry.keys[SCORE],
            value=entry.score.value,
            ci_low=entry.score.ci_low,
            ci_high=entry.score.ci_high,
            n=entry.score.n,
            unit=entry.definition.unit,
            text=layout.text(entry.score, entry.definition.unit),
            best=place in best,
            p=test and test.p,
            p_corrected=test and test.p_corrected,
            differs=test is not None and test.differs,
            notes=entry.notes,
        )


def _same_cell(one: Entry, other: Entry) -> InvalidInputError:
    different = [key for key, value in one.keys.items() if other.keys.get(key) != value]
    if not different:
        return InvalidInputError(
            f"two runs have the keys {named(list(one.keys.values()))}; give each run once, or name "
            "them apart, such as model=llava,split=random"
        )
    key = different[0]
    return InvalidInputError(
        f"the values of {key} {one.keys[key]!r:.40} and {other.keys.get(key)!r:.40} have the same "
        f"cell; add {key} to the rows or columns"
    )


def table_grid(
    title: str, cells: Sequence[TableCell], rows: Sequence[str], columns: Sequence[str]
) -> Grid:
    """Return cells as a table; keys of columns that have one value in all of them are left out."""
    # Columns without any value are left out, unless all are such.
    across = _in_blocks([c for c in cells if c.value is not None] or cells, columns)
    names = _in_blocks(cells, rows)
    at = {(_key(cell, rows), _key(cell, columns)): cell for cell in cells}
    told = [place for place in range(len(columns)) if len({column[place] for column in across}) > 1]
    # All columns may be alike: the last key, usually the score, then names them.
    told = told or [len(columns) - 1]
    heads = [tuple(column[place] or "(none)" for place in told) for column in across]
    found = [[at.get((name, column)) for column in across] for name in names]
    return Grid(
        title=title,
        headings=(*rows, *(head[-1] for head in heads)),
        rows=tuple(
            (*(part or "(none)" for part in name), *map(_text, line))
            for name, line in zip(names, found, strict=True)
        ),
        keys=(*rows, *map(" ".join, heads)),
        values=tuple(
            (*name, *(cell.value if cell else None for cell in line))
            for name, line in zip(names, found, strict=True)
        ),
        bold=frozenset(
            (row, len(rows) + place)
            for row, line in enumerate(found)
            for place, cell in enumerate(line)
            if cell is not None and cell.best
        ),
        over=("",) * len(rows) + tuple(" ".join(head[:-1]) for head in heads)
        if len(told) > 1
        else (),
        notes=tuple(
            " ".join(dict.fromkeys(note for cell in line if cell for note in cell.notes))
            for line in found
        ),
    )


def _in_blocks(cells: Sequence[TableCell], keys: Sequence[str]) -> list[_Key]:
    """Return the rows or columns, those with the same first keys next to each other."""
    found = dict.fromkeys(_key(cell, keys) for cell in cells)
    places: dict[_Key, int] = {}
    for key in found:
        for depth in range(len(key)):
            places.setdefault(key[: depth + 1], len(places))
    # By the first appearance of each prefix, so that a heading over several columns stands once.
    return sorted(found, key=lambda key: [places[key[: n + 1]] for n in range(len(key))])


def _key(cell: TableCell, keys: Sequence[str]) -> _Key:
    return tuple(cell.keys[key] for key in keys)


def _text(cell: TableCell | None) -> str:
    return ABSENT if cell is None else f"{cell.text}{'*' * cell.differs}"


def differing_unparsed_rates(metric: Metric, runs: Sequence[Report]) -> tuple[str, ...]:
    """Return the rates of unparsed answers that differ between reports of one metric."""
    return tuple(
        score.name
        for score in metric.scores
        if score.is_unparsed_rate
        and all(score.name in run.scores for run in runs)
        and len({run.scores[score.name].value for run in runs}) > 1
    )


def different_sizes(runs: Iterable[tuple[str, str, int]]) -> Iterator[str]:
    """Yield a note for each column whose runs are not of the same number of items.

    Args:
        runs: The column, the run and its number of items.
    """
    sizes: dict[str, dict[int, str]] = {}
    for column, name, items in runs:
        # One run is enough as an example of its size.
        sizes.setdefault(column, {}).setdefault(items, name)
    for column, found in sizes.items():
        if len(found) > 1:
            shown = ", ".join(f"{items:,} ({name})" for items, name in found.items())
            yield (
                f"{column}: runs have different numbers of items, {shown}; they are comparable "
                "only if they ask the same questions equally often"
            )


def shared_signatures(runs: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """Return the signatures by the names of their runs; runs with equal ones share a line.

    Args:
        runs: The column, the run and its signature.
    """
    names: dict[tuple[str, str], list[str]] = {}
    for column, name, signature in runs:
        names.setdefault((column, signature), []).append(name)
    return {f"{column} of {named(of)}": signature for (column, signature), of in names.items()}
