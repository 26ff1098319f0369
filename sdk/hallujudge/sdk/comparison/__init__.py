"""Comparisons of runs: differences, gates for continuous integration, leaderboards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics.framework import names_on_use

if TYPE_CHECKING:
    from hallujudge.studies.leaderboard_tables import (
        Leaderboard,
        LeaderboardRow,
        Leaderboards,
        PairTest,
    )
    from hallujudge.studies.leaderboards import leaderboard, leaderboards
    from hallujudge.studies.paper_tables import PaperTable, paper_table

    from .compared_runs import CompareOptions
    from .differences import compare
    from .gates import Gate, GateCheck, GateLimits, gate
    from .item_pairs import ItemChange, changed_items
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

_NAMES = {
    "hallujudge.studies.leaderboard_tables": "Leaderboard LeaderboardRow Leaderboards PairTest",
    "hallujudge.studies.leaderboards": "leaderboard leaderboards",
    "hallujudge.studies.paper_tables": "PaperTable paper_table",
    ".compared_runs": "CompareOptions",
    ".differences": "compare",
    ".gates": "Gate GateCheck GateLimits gate",
    ".item_pairs": "ItemChange changed_items",
    ".results": (
        "Comparison CorrectedDifference Pair PairCoverage RunLabel ScoreChanges ScoreDifference"
    ),
    ".run_names": "RunSource",
    ".table_cells": "TableCell TableLayout",
}
"""Module -> the public names that it defines."""

__getattr__, __dir__ = names_on_use(__name__, _NAMES)
