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
    "merge_runs",
    "read_items",
    "read_run",
    "recompute",
    "rescore_run",
    "score_all",
]

_HOMES = {
    "Analysis": ".analysis",
    "AnalysisOptions": ".analysis",
    "ArchiveReader": ".archives",
    "ArchiveSummary": ".archives",
    "AsyncClient": ".async_client",
    "BatchResult": ".backends.base",
    "Bound": "hallujudge.metrics",
    "CalibrateOptions": ".calibration",
    "CalibratedScore": "hallujudge.metrics.calibration.calibrated_scores",
    "Calibration": "hallujudge.metrics.calibration.calibrated_scores",
    "Client": ".client",
    "CompareOptions": ".comparison",
    "Comparison": ".comparison",
    "Connection": "hallujudge.judge_service.settings.connection",
    "CorrectedDifference": ".comparison",
    "Coverage": "hallujudge.metrics",
    "EmbeddedBackend": ".backends.embedded",
    "Estimate": "hallujudge.judge_service.llm.estimate",
    "FoundClaim": "hallujudge.judge_service.engine.registry",
    "Gate": ".comparison",
    "GateCheck": ".comparison",
    "GateLimits": ".comparison",
    "GraphSource": "hallujudge.judge_service.engine.spec",
    "InlineGraph": "hallujudge.judge_service.engine.spec",
    "InputOptions": ".archives.inputs",
    "IntervalSettings": "hallujudge.metrics",
    "Item": "hallujudge.metrics",
    "ItemChange": ".comparison",
    "ItemResult": "hallujudge.metrics",
    "ItemSource": ".archives.inputs",
    "JobInfo": ".jobs",
    "Leaderboard": ".comparison",
    "LeaderboardRow": ".comparison",
    "LeftOut": ".overview",
    "Manifest": ".runs",
    "OnBatch": ".score_run",
    "OnJobChange": ".jobs",
    "OnProgress": ".score_run",
    "Outcome": "hallujudge.metrics",
    "Overview": ".overview",
    "Pair": ".comparison",
    "PairCoverage": ".comparison",
    "PairTest": ".comparison",
    "PreparedRun": ".runs.run_inputs",
    "References": ".archives.inputs",
    "RemoteBackend": ".backends.remote",
    "Report": "hallujudge.metrics",
    "Responses": ".archives.inputs",
    "RunFolder": ".runs",
    "RunItem": ".runs",
    "RunItems": ".runs",
    "RunLabel": ".comparison",
    "RunProgress": "hallujudge.judge_service.engine.streams",
    "RunReport": ".runs",
    "RunSource": ".comparison",
    "RunWatch": ".runs",
    "Score": "hallujudge.metrics",
    "ScoreChanges": ".comparison",
    "ScoreDifference": ".comparison",
    "ScoreRun": ".score_run",
    "ScoreSpec": "hallujudge.judge_service.engine.spec",
    "ScoredRun": ".overview",
    "ScoringBackend": ".backends.base",
    "Secret": "hallujudge.judge_service.settings.connection",
    "ServerInfo": ".backends.base",
    "ShippedGraph": "hallujudge.judge_service.engine.spec",
    "StoredRun": ".runs",
    "Timeouts": ".backends.base",
    "__version__": "hallujudge.judge_service.installation",
    "analyze": ".analysis",
    "analyze_results": ".analysis",
    "calibrate": ".calibration",
    "changed_items": ".comparison",
    "compare": ".comparison",
    "gate": ".comparison",
    "inspect_archives": ".archives",
    "leaderboard": ".comparison",
    "merge_runs": ".runs",
    "read_items": ".archives",
    "read_run": ".runs",
    "recompute": ".runs",
    "rescore_run": ".rescoring",
    "score_all": ".overview",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)


def __dir__() -> list[str]:
    return __all__
