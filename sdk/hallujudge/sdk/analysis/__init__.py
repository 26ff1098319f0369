"""The papers' analyses of a run, computed from its files without judging again."""

from __future__ import annotations

from .analyze import ANALYSIS_FILE, AnalysisOptions, analyze, analyze_results
from .values import Analysis, AnalysisTable, Cell

__all__ = [
    "ANALYSIS_FILE",
    "Analysis",
    "AnalysisOptions",
    "AnalysisTable",
    "Cell",
    "analyze",
    "analyze_results",
]
