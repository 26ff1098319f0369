"""Leaderboards: frozen values, shown as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from hallujudge.metrics.framework.columns_and_scores import Direction
from hallujudge.metrics.framework.results import JsonValue
from hallujudge.sdk.comparison.named_runs import RunLabel, notes_of_row, sources_of
from hallujudge.sdk.report.report_text import counted, interval_heading, show_number, show_range
from hallujudge.sdk.report.table_pages import Grid, Page, Shown, show_p


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaderboard(Shown):
    """Runs by rank."""

    schema = "leaderboard"

    metric: str
    """The metric's name."""
    variant: str
    score: str
    """The score by which runs are ranked."""
    direction: Direction
    """Which end of the score is better."""
    items: int
    """How many items are scored in all runs."""
    runs: tuple[RunLabel, ...]
    """The runs, in the order in which they were given."""
    rows: tuple[LeaderboardRow, ...]
    """The runs by rank."""
    tests: tuple[PairTest, ...]
    """Every pair of runs."""
    confidence: float
    """Confidence level of the intervals; 1 minus the level of the tests."""
    method: str
    """How intervals and p-values were made."""
    notes: tuple[str, ...] = ()
    """Warnings, one sentence each."""
    unparsed: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    """Rates of unparsed answers that differ between the runs: score -> run -> its value over all
    items of the run."""

    def ranks(self, unparsed: Sequence[str]) -> Grid:
        """Return the table of ranks.

        Args:
            unparsed: Names of the rates of unparsed answers that have a column.
        """
        notes = {run.name: notes_of_row([run]) for run in self.runs}
        rates = {
            row.run: [self.unparsed.get(name, {}).get(row.run) for name in unparsed]
            for row in self.rows
        }
        interval = interval_heading(self.confidence)
        keys = ("rank", "run", "value", "ci_low", "ci_high", "groups", "unscored")
        return Grid(
            title=f"{self.score}, {self.direction} is better, over {self.items:,} items",
            headings=("rank", "run", self.score, interval, "group", "unscored", *unparsed),
            rows=tuple((*_shown_row(row), *map(show_number, rates[row.run])) for row in self.rows),
            keys=(*keys, *unparsed),
            values=tuple((*asdict(row).values(), *rates[row.run]) for row in self.rows),
            notes=tuple(notes[row.run] for row in self.rows),
        )

    def page(self) -> Page:
        """Return the ranks and the tests as tables."""
        interval = interval_heading(self.confidence)
        ranks = self.ranks(tuple(self.unparsed))
        tests = Grid(
            title="Pairs of runs",
            headings=("run", "against", "difference", interval, "p", "p (Holm)"),
            rows=tuple(map(_shown_test, self.tests)),
            keys=("first", "second", "difference", "ci_low", "ci_high", "p", "p_corrected"),
            values=tuple(tuple(asdict(test).values()) for test in self.tests),
            # Letters rest on the corrected value, so that a narrow terminal can do without this.
            spare=("p",),
        )
        return Page(
            title=f"{self.metric} ({self.variant}): leaderboard",
            grids=(ranks, tests),
            sentences=(
                "Runs that share a letter can't be told apart: p (Holm) of the paired permutation "
                f"test, corrected for {counted(len(self.tests), 'pair')}, is above "
                f"{1 - self.confidence:.4g}.",
            ),
            notes=self.notes,
            sources={**sources_of(self.runs), "method": self.method},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaderboards(Shown):
    """The leaderboards of all metrics of an overview."""

    schema = "leaderboards"

    boards: Mapping[str, Leaderboard]
    """Name of the runs, the metric and its task if there are several -> leaderboard."""
    left_out: tuple[str, ...]
    """Why other metrics of the overview have none, one sentence each."""

    def __getitem__(self, name: str) -> Leaderboard:
        return self.boards[name]

    def to_json(self) -> Mapping[str, JsonValue]:
        """Return the leaderboards as plain values."""
        boards: dict[str, JsonValue] = {
            name: dict(board.to_json()) for name, board in self.boards.items()
        }
        return {"boards": boards, "left_out": self.left_out}

    def page(self) -> Page:
        """Return the ranks of all metrics in one table, and the tests in another."""
        pages = {name: board.page() for name, board in self.boards.items()}
        boards = self.boards.values()
        # One table for all metrics has a column for each rate that any of them reports.
        unparsed = tuple(dict.fromkeys(name for board in boards for name in board.unparsed))
        sources = [
            (f"{name}: {key}", text)
            for name, page in pages.items()
            for key, text in page.sources.items()
        ]
        return Page(
            title="Leaderboards",
            grids=(
                self._grid("Ranks by metric", [board.ranks(unparsed) for board in boards]),
                self._grid("Pairs of runs", [board.page().grids[1] for board in boards]),
            ),
            sentences=(
                "Runs of one metric that share a letter can't be told apart by the paired "
                "permutation test, corrected by Holm's method for the metric's pairs.",
            ),
            notes=(
                *(f"{name}: {note}" for name, page in pages.items() for note in page.notes),
                *(f"not ranked: {reason}" for reason in self.left_out),
            ),
            sources=dict(sources),
        )

    def _grid(self, title: str, tables: Sequence[Grid]) -> Grid:
        """Return tables of all leaderboards as one, with the metric and its score in front."""
        heads = [(name, board.score) for name, board in self.boards.items()]
        grids, first = list(zip(heads, tables, strict=True)), tables[0]
        # Metrics rank by different scores, whose name is in the column before.
        headings = ["value" if each == heads[0][1] else each for each in first.headings]
        return Grid(
            title=title,
            headings=("metric", "score", *headings),
            rows=tuple((*head, *row) for head, grid in grids for row in grid.rows),
            keys=("metric", "score", *first.keys),
            values=tuple((*head, *row) for head, grid in grids for row in grid.values),
            spare=first.spare,
            notes=tuple(note for grid in tables for note in grid.notes),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardRow:
    """A run and its place."""

    rank: int
    """Rank, counted from 1; equal scores have equal ranks."""
    run: str
    """The run's name."""
    value: float
    """Its score, over the items that are scored in all runs."""
    ci_low: float | None
    """Lower end of the score's interval; None without one."""
    ci_high: float | None
    """Upper end of the interval."""
    groups: str
    """Letters; runs that share a letter can't be told apart."""
    unscored: int
    """How many of the run's items are unscored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTest:
    """Two runs, tested against each other."""

    first: str
    """The run with the better rank."""
    second: str
    """The other run."""
    difference: float
    """Second minus first."""
    ci_low: float | None
    """Lower end of the difference's interval; None without one."""
    ci_high: float | None
    """Upper end of the interval."""
    p: float
    """Two-sided p-value of the paired permutation test."""
    p_corrected: float
    """The p-value after Holm's correction for all pairs of runs."""


def _shown_row(row: LeaderboardRow) -> tuple[str, ...]:
    return (
        str(row.rank),
        row.run,
        show_number(row.value),
        show_range(row.ci_low, row.ci_high),
        row.groups,
        f"{row.unscored:,}",
    )


def _shown_test(test: PairTest) -> tuple[str, ...]:
    return (
        # The second run stands first, since a difference is what it has more than the first.
        test.second,
        test.first,
        show_number(test.difference, signed=True),
        show_range(test.ci_low, test.ci_high, signed=True),
        show_p(test.p),
        show_p(test.p_corrected),
    )
