"""The scoring SDK.

    from hallujudge.sdk import Client

    client = Client.embedded()          # in this process, or Client("localhost:50051")
    report = client.score("chair", responses="captions.jsonl", references="objects.json")
    print(report.chair_i, report.signature)

Names are looked up when they are first used: importing this package loads neither numpy nor grpc.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from . import errors
from .errors import HallujudgeError

if TYPE_CHECKING:
    from hallujudge.judge_service.version import __version__
    from hallujudge.metrics import Coverage, ItemResult, Outcome, Report, Score

    from .aio import AsyncClient
    from .analysis import Analysis, AnalysisOptions, analyze, analyze_results
    from .client import Client

__all__ = [
    "Analysis",
    "AnalysisOptions",
    "AsyncClient",
    "Client",
    "Coverage",
    "HallujudgeError",
    "ItemResult",
    "Outcome",
    "Report",
    "Score",
    "__version__",
    "analyze",
    "analyze_results",
    "errors",
]

_HOMES = {
    "Analysis": ".analysis",
    "AnalysisOptions": ".analysis",
    "AsyncClient": ".aio",
    "Client": ".client",
    "Coverage": "hallujudge.metrics",
    "ItemResult": "hallujudge.metrics",
    "Outcome": "hallujudge.metrics",
    "Report": "hallujudge.metrics",
    "Score": "hallujudge.metrics",
    "analyze": ".analysis",
    "analyze_results": ".analysis",
    "__version__": "hallujudge.judge_service.version",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)
