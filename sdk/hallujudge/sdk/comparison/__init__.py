"""Comparisons of runs: differences, gates for continuous integration, leaderboards."""

from __future__ import annotations

from .compared_runs import CompareOptions
from .differences import compare
from .gates import Gate, GateCheck, GateLimits, gate
from .item_pairs import ItemChange, changed_items
from .leaderboard_tables import Leaderboard, LeaderboardRow, Leaderboards, PairTest
from .leaderboards import leaderboard, leaderboards
from .paper_tables import PaperTable, paper_table
from .results import (
    Comparison,
    CorrectedDifference,
    Pair,
    PairCoverage,
    RunLabel,
    ScoreChanges,
    ScoreDifference,
)
from .run_names import RunSource
from .table_cells import TableCell, TableLayout

__all__ = [
    "CompareOptions",
    "Comparison",
    "CorrectedDifference",
    "Gate",
    "GateCheck",
    "GateLimits",
    "ItemChange",
    "Leaderboard",
    "LeaderboardRow",
    "Leaderboards",
    "Pair",
    "PairCoverage",
    "PairTest",
    "PaperTable",
    "RunLabel",
    "RunSource",
    "ScoreChanges",
    "ScoreDifference",
    "TableCell",
    "TableLayout",
    "changed_items",
    "compare",
    "gate",
    "leaderboard",
    "leaderboards",
    "paper_table",
]
