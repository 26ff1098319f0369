"""The papers' analyses of finished runs, computed from their files without judging again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics.framework import names_on_use

if TYPE_CHECKING:
    from hallujudge.studies.analysis import all_analyses, analyze
    from hallujudge.studies.analysis_options import AnalysisOption

    from .report.analysis_tables import Analysis, AnalysisTable
    from .report.table_pages import Cell
    from .runs.manifest import ANALYSIS
    from .runs.result_files import stored_analysis

__all__ = [
    "ANALYSIS",
    "Analysis",
    "AnalysisOption",
    "AnalysisTable",
    "Cell",
    "all_analyses",
    "analyze",
    "stored_analysis",
]

_NAMES = {
    "hallujudge.studies.analysis": "all_analyses analyze",
    "hallujudge.studies.analysis_options": "AnalysisOption",
    "hallujudge.sdk.report.analysis_tables": "Analysis AnalysisTable",
    "hallujudge.sdk.report.table_pages": "Cell",
    "hallujudge.sdk.runs.manifest": "ANALYSIS",
    "hallujudge.sdk.runs.result_files": "stored_analysis",
}
"""Module -> the public names that it defines."""

__getattr__, __dir__ = names_on_use(__name__, _NAMES)
