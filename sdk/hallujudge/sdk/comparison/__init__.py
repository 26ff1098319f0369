"""Comparisons of runs: differences, gates for continuous integration, leaderboards."""

from __future__ import annotations

from .compare import compare
from .gate import GateLimits, gate
from .gate_result import Gate, GateCheck
from .items import ItemChange, changed_items
from .leaderboard import leaderboard
from .leaderboard_result import Leaderboard, LeaderboardRow, PairTest
from .options import CompareOptions, RunSource
from .result import Comparison
from .values import (
    CorrectedDifference,
    Pair,
    PairCoverage,
    RunLabel,
    ScoreChanges,
    ScoreDifference,
)

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
    "Pair",
    "PairCoverage",
    "PairTest",
    "RunLabel",
    "RunSource",
    "ScoreChanges",
    "ScoreDifference",
    "changed_items",
    "compare",
    "gate",
    "leaderboard",
]
