"""Comparisons of runs: differences, gates for continuous integration, leaderboards."""

from __future__ import annotations

from .compare import compare
from .items import ItemChange, changed_items
from .options import CompareOptions, RunSource
from .result import Comparison
from .values import Pair, PairCoverage, RunLabel, ScoreChanges, ScoreDifference

__all__ = [
    "CompareOptions",
    "Comparison",
    "ItemChange",
    "Pair",
    "PairCoverage",
    "RunLabel",
    "RunSource",
    "ScoreChanges",
    "ScoreDifference",
    "changed_items",
    "compare",
]
