"""The scoring SDK.

    from hallujudge.sdk import Client

    client = Client.embedded()          # in this process, or Client("localhost:50051")
    report = client.score("chair", responses="captions.jsonl", references="objects.json")
    print(report.chair_i, report.signature)

Names are imported when they are first used: importing this package loads neither numpy nor grpc.
Those that the package ``hallujudge-client`` does not have say what to install.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics.framework import names_on_use

# Names that are imported under their own name are public to type checkers.
if TYPE_CHECKING:
    from hallujudge.judge_service import __version__ as __version__
    from hallujudge.judge_service.engine.found_claims import FoundClaim as FoundClaim
    from hallujudge.judge_service.engine.spec import GraphSource as GraphSource
    from hallujudge.judge_service.engine.spec import InlineGraph as InlineGraph
    from hallujudge.judge_service.engine.spec import RunHeader as RunHeader
    from hallujudge.judge_service.engine.spec import ScoreSpec as ScoreSpec
    from hallujudge.judge_service.engine.spec import ShippedGraph as ShippedGraph
    from hallujudge.judge_service.engine.streams import RunProgress as RunProgress
    from hallujudge.judge_service.llm.estimate import Estimate as Estimate
    from hallujudge.judge_service.settings.connection import Connection as Connection
    from hallujudge.judge_service.settings.connection import Secret as Secret
    from hallujudge.metrics import Bound as Bound
    from hallujudge.metrics import Coverage as Coverage
    from hallujudge.metrics import IntervalSettings as IntervalSettings
    from hallujudge.metrics import Item as Item
    from hallujudge.metrics import ItemResult as ItemResult
    from hallujudge.metrics import Outcome as Outcome
    from hallujudge.metrics import Report as Report
    from hallujudge.metrics import Score as Score
    from hallujudge.metrics.calibration.calibrated_scores import CalibratedScore as CalibratedScore
    from hallujudge.metrics.calibration.calibrated_scores import Calibration as Calibration
    from hallujudge.metrics.families import add_benchmarks as add_benchmarks
    from hallujudge.metrics.families import remove_benchmarks as remove_benchmarks

    from . import errors as errors
    from .analysis import Analysis as Analysis
    from .analysis import AnalysisTable as AnalysisTable
    from .analysis import analyze as analyze
    from .archives import ArchiveReader as ArchiveReader
    from .archives import ArchiveSummary as ArchiveSummary
    from .archives import inspect_archives as inspect_archives
    from .archives import read_items as read_items
    from .archives.example_files import ExampleArchive as ExampleArchive
    from .archives.example_files import example_archives as example_archives
    from .archives.example_files import write_example as write_example
    from .archives.inputs import InputOptions as InputOptions
    from .archives.inputs import ItemSource as ItemSource
    from .archives.inputs import References as References
    from .archives.inputs import Responses as Responses
    from .async_client import AsyncClient as AsyncClient
    from .backends import BatchResult as BatchResult
    from .backends import ScoringBackend as ScoringBackend
    from .backends import ServerInfo as ServerInfo
    from .backends import Timeouts as Timeouts
    from .backends.embedded import EmbeddedBackend as EmbeddedBackend
    from .backends.remote import RemoteBackend as RemoteBackend
    from .calibration import CalibrateOptions as CalibrateOptions
    from .calibration import calibrate as calibrate
    from .client import Client as Client
    from .comparison import CompareOptions as CompareOptions
    from .comparison import Comparison as Comparison
    from .comparison import CorrectedDifference as CorrectedDifference
    from .comparison import Gate as Gate
    from .comparison import GateCheck as GateCheck
    from .comparison import GateLimits as GateLimits
    from .comparison import ItemChange as ItemChange
    from .comparison import Leaderboard as Leaderboard
    from .comparison import LeaderboardRow as LeaderboardRow
    from .comparison import Leaderboards as Leaderboards
    from .comparison import Pair as Pair
    from .comparison import PairCoverage as PairCoverage
    from .comparison import PairTest as PairTest
    from .comparison import PaperTable as PaperTable
    from .comparison import RunLabel as RunLabel
    from .comparison import RunSource as RunSource
    from .comparison import ScoreChanges as ScoreChanges
    from .comparison import ScoreDifference as ScoreDifference
    from .comparison import TableCell as TableCell
    from .comparison import TableLayout as TableLayout
    from .comparison import changed_items as changed_items
    from .comparison import compare as compare
    from .comparison import gate as gate
    from .comparison import leaderboard as leaderboard
    from .comparison import leaderboards as leaderboards
    from .comparison import paper_table as paper_table
    from .comparison.overview import LeftOut as LeftOut
    from .comparison.overview import Overview as Overview
    from .comparison.overview import ScoredRun as ScoredRun
    from .comparison.overview import score_all as score_all
    from .derived_runs import merge_runs as merge_runs
    from .derived_runs import rescore_run as rescore_run
    from .errors import HallujudgeError as HallujudgeError
    from .runs import Manifest as Manifest
    from .runs import RunFolder as RunFolder
    from .runs import RunItem as RunItem
    from .runs import RunItems as RunItems
    from .runs import RunReport as RunReport
    from .runs import RunWatch as RunWatch
    from .runs import StoredRun as StoredRun
    from .runs import read_run as read_run
    from .runs import recompute as recompute
    from .runs.response_scores import Response as Response
    from .runs.response_scores import ResponseScore as ResponseScore
    from .runs.run_inputs import PreparedRun as PreparedRun
    from .runs.score_run import OnBatch as OnBatch
    from .runs.score_run import OnProgress as OnProgress
    from .runs.score_run import ScoreRun as ScoreRun
    from .runs.server_jobs import JobInfo as JobInfo
    from .runs.server_jobs import OnJobChange as OnJobChange
    from .scorer import Scorer as Scorer

_named, __dir__ = names_on_use(__name__)
__all__ = __dir__()


def __getattr__(name: str) -> object:
    try:
        return _named(name)
    except ModuleNotFoundError:
        # Imported here: it is known before any module that the command line guards.
        from .errors import MissingExtraError

        with MissingExtraError.unless_whole(f"hallujudge.sdk.{name}"):
            raise
