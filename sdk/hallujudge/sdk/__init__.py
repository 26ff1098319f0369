"""The scoring SDK.

    from hallujudge.sdk import Client

    client = Client.embedded()          # in this process, or Client("localhost:50051")
    report = client.score("chair", responses="captions.jsonl", references="objects.json")
    print(report.chair_i, report.signature)

Names are imported when they are first used: importing this package loads neither numpy nor grpc.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from . import errors
from .errors import HallujudgeError

if TYPE_CHECKING:
    from hallujudge.judge_service.engine.registry import FoundClaim
    from hallujudge.judge_service.engine.spec import (
        GraphSource,
        InlineGraph,
        ScoreSpec,
        ShippedGraph,
    )
    from hallujudge.judge_service.engine.streams import RunProgress
    from hallujudge.judge_service.installation import __version__
    from hallujudge.judge_service.llm.estimate import Estimate
    from hallujudge.judge_service.settings.connection import Connection, Secret
    from hallujudge.metrics import (
        Bound,
        Coverage,
        IntervalSettings,
        Item,
        ItemResult,
        Outcome,
        Report,
        Score,
    )
    from hallujudge.metrics.calibration.calibrated_scores import CalibratedScore, Calibration

    from .analysis import Analysis, AnalysisOptions, analyze, analyze_results
    from .archives import ArchiveReader, ArchiveSummary, inspect_archives, read_items
    from .archives.inputs import InputOptions, ItemSource, References, Responses
    from .async_client import AsyncClient
    from .backends.base import BatchResult, ScoringBackend, ServerInfo, Timeouts
    from .backends.embedded import EmbeddedBackend
    from .backends.remote import RemoteBackend
    from .calibration import CalibrateOptions, calibrate
    from .client import Client
    from .comparison import (
        CompareOptions,
        Comparison,
        CorrectedDifference,
        Gate,
        GateCheck,
        GateLimits,
        ItemChange,
        Leaderboard,
        LeaderboardRow,
        Leaderboards,
        Pair,
        PairCoverage,
        PairTest,
        RunLabel,
        RunSource,
        ScoreChanges,
        ScoreDifference,
        changed_items,
        compare,
        gate,
        leaderboard,
        leaderboards,
    )
    from .jobs import JobInfo, OnJobChange
    from .overview import LeftOut, Overview, ScoredRun, score_all
    from .rescoring import rescore_run
    from .runs import (
        Manifest,
        RunFolder,
        RunItem,
        RunItems,
        RunReport,
        RunWatch,
        StoredRun,
        merge_runs,
        read_run,
        recompute,
    )
    from .runs.run_inputs import PreparedRun
    from .score_run import OnBatch, OnProgress, ScoreRun

__all__ = [
    "Analysis",
    "AnalysisOptions",
    "ArchiveReader",
    "ArchiveSummary",
    "AsyncClient",
    "BatchResult",
    "Bound",
    "CalibrateOptions",
    "CalibratedScore",
    "Calibration",
    "Client",
    "CompareOptions",
    "Comparison",
    "Connection",
    "CorrectedDifference",
    "Coverage",
    "EmbeddedBackend",
    "Estimate",
    "FoundClaim",
    "Gate",
    "GateCheck",
    "GateLimits",
    "GraphSource",
    "HallujudgeError",
    "InlineGraph",
    "InputOptions",
    "IntervalSettings",
    "Item",
    "ItemChange",
    "ItemResult",
    "ItemSource",
    "JobInfo",
    "Leaderboard",
    "LeaderboardRow",
    "Leaderboards",
    "LeftOut",
    "Manifest",
    "OnBatch",
    "OnJobChange",
    "OnProgress",
    "Outcome",
    "Overview",
    "Pair",
    "PairCoverage",
    "PairTest",
    "PreparedRun",
    "References",
    "RemoteBackend",
    "Report",
    "Responses",
    "RunFolder",
    "RunItem",
    "RunItems",
    "RunLabel",
    "RunProgress",
    "RunReport",
    "RunSource",
    "RunWatch",
    "Score",
    "ScoreChanges",
    "ScoreDifference",
    "ScoreRun",
    "ScoreSpec",
    "ScoredRun",
    "ScoringBackend",
    "Secret",
    "ServerInfo",
    "ShippedGraph",
    "StoredRun",
    "Timeouts",
    "__version__",
    "analyze",
    "analyze_results",
    "calibrate",
    "changed_items",
    "compare",
    "errors",
    "gate",
    "inspect_archives",
    "leaderboard",
    "leaderboards",
    "merge_runs",
    "read_items",
    "read_run",
    "recompute",
    "rescore_run",
    "score_all",
]

_NAMES = {
    ".analysis": "Analysis AnalysisOptions analyze analyze_results",
    ".archives": "ArchiveReader ArchiveSummary inspect_archives read_items",
    ".archives.inputs": "InputOptions ItemSource References Responses",
    ".async_client": "AsyncClient",
    ".backends.base": "BatchResult ScoringBackend ServerInfo Timeouts",
    ".backends.embedded": "EmbeddedBackend",
    ".backends.remote": "RemoteBackend",
    ".calibration": "CalibrateOptions calibrate",
    ".client": "Client",
    ".comparison": (
        "CompareOptions Comparison CorrectedDifference Gate GateCheck GateLimits ItemChange "
        "Leaderboard LeaderboardRow Leaderboards Pair PairCoverage PairTest RunLabel RunSource "
        "ScoreChanges ScoreDifference changed_items compare gate leaderboard leaderboards"
    ),
    ".jobs": "JobInfo OnJobChange",
    ".overview": "LeftOut Overview ScoredRun score_all",
    ".rescoring": "rescore_run",
    ".runs": (
        "Manifest RunFolder RunItem RunItems RunReport RunWatch StoredRun merge_runs "
        "read_run recompute"
    ),
    ".runs.run_inputs": "PreparedRun",
    ".score_run": "OnBatch OnProgress ScoreRun",
    "hallujudge.judge_service.engine.registry": "FoundClaim",
    "hallujudge.judge_service.engine.spec": "GraphSource InlineGraph ScoreSpec ShippedGraph",
    "hallujudge.judge_service.engine.streams": "RunProgress",
    "hallujudge.judge_service.installation": "__version__",
    "hallujudge.judge_service.llm.estimate": "Estimate",
    "hallujudge.judge_service.settings.connection": "Connection Secret",
    "hallujudge.metrics": "Bound Coverage IntervalSettings Item ItemResult Outcome Report Score",
    "hallujudge.metrics.calibration.calibrated_scores": "CalibratedScore Calibration",
}
"""Module -> the public names that it defines."""
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)


def __dir__() -> list[str]:
    return __all__
