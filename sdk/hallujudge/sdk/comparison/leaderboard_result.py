"""A leaderboard: runs by rank, and which of them can't be told apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import cast

from hallujudge.metrics.framework.columns_and_scores import Direction
from hallujudge.metrics.framework.results import JsonValue

from ..report.report_text import counted
from ..report.table_pages import Grid, Page, show_number, show_p, show_range
from .result import sources_of
from .shown import Shown
from .values import RunLabel

__all__ = ["Leaderboard", "LeaderboardRow", "PairTest"]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaderboard(Shown):
    """Runs by rank."""

    metric: str
    """The metric's name."""
    variant: str
    """The variant."""
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

    def to_json(self) -> Mapping[str, JsonValue]:
        """Return the leaderboard as plain values."""
        return cast("Mapping[str, JsonValue]", asdict(self))

    def page(self) -> Page:
        """Return the ranks and the tests as tables."""
        interval = f"{self.confidence * 100:g}% interval"
        ranks = Grid(
            title=f"{self.score}, {self.direction} is better, over {self.items:,} items",
            headings=("rank", "run", self.score, interval, "group", "unscored"),
            rows=tuple(map(_shown_row, self.rows)),
            keys=("rank", "run", "value", "ci_low", "ci_high", "groups", "unscored"),
            values=tuple(tuple(asdict(row).values()) for row in self.rows),
        )
        tests = Grid(
            title="Pairs of runs",
            headings=("run", "against", "difference", interval, "p", "p (Holm)"),
            rows=tuple(map(_shown_test, self.tests)),
            keys=("first", "second", "difference", "ci_low", "ci_high", "p", "p_corrected"),
            values=tuple(tuple(asdict(test).values()) for test in self.tests),
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
        test.second,
        test.first,
        show_number(test.difference, signed=True),
        show_range(test.ci_low, test.ci_high, signed=True),
        show_p(test.p),
        show_p(test.p_corrected),
    )
