"""Comparisons of runs: differences, gates for continuous integration, leaderboards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics.framework import names_on_use

# Names that are imported under their own name are public to type checkers.
if TYPE_CHECKING:
    from hallujudge.studies.leaderboard_tables import Leaderboard as Leaderboard
    from hallujudge.studies.leaderboard_tables import LeaderboardRow as LeaderboardRow
    from hallujudge.studies.leaderboard_tables import Leaderboards as Leaderboards
    from hallujudge.studies.leaderboard_tables import PairTest as PairTest
    from hallujudge.studies.leaderboards import leaderboard as leaderboard
    from hallujudge.studies.leaderboards import leaderboards as leaderboards
    from hallujudge.studies.paper_tables import PaperTable as PaperTable
    from hallujudge.studies.paper_tables import paper_table as paper_table

    from .compared_runs import CompareOptions as CompareOptions
    from .differences import compare as compare
    from .gates import Gate as Gate
    from .gates import GateCheck as GateCheck
    from .gates import GateLimits as GateLimits
    from .gates import gate as gate
    from .item_pairs import ItemChange as ItemChange
    from .item_pairs import changed_items as changed_items
    from .named_runs import RunLabel as RunLabel
    from .named_runs import RunSource as RunSource
    from .results import Comparison as Comparison
    from .results import CorrectedDifference as CorrectedDifference
    from .results import Pair as Pair
    from .results import PairCoverage as PairCoverage
    from .results import ScoreChanges as ScoreChanges
    from .results import ScoreDifference as ScoreDifference
    from .table_cells import TableCell as TableCell
    from .table_cells import TableLayout as TableLayout

__getattr__, __dir__ = names_on_use(__name__)
__all__ = __dir__()
