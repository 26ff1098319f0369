"""The papers' analyses of finished runs, computed from their files without judging again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics.framework import names_on_use

# Names that are imported under their own name are public to type checkers.
if TYPE_CHECKING:
    from hallujudge.studies.analysis import all_analyses as all_analyses
    from hallujudge.studies.analysis import analyze as analyze
    from hallujudge.studies.analysis_options import AnalysisOption as AnalysisOption

    from .report.analysis_tables import Analysis as Analysis
    from .report.analysis_tables import AnalysisTable as AnalysisTable
    from .report.table_pages import Cell as Cell
    from .runs.manifest import ANALYSIS as ANALYSIS
    from .runs.result_files import stored_analysis as stored_analysis

__getattr__, __dir__ = names_on_use(__name__)
__all__ = __dir__()
