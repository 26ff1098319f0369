"""The scoring SDK.

    from hallujudge.sdk import Client

    client = Client.embedded()          # in this process, or Client("localhost:50051")
    report = client.score("chair", responses="captions.jsonl", references="objects.json")
    print(report.chair_i, report.signature)

Importing this package loads neither numpy nor grpc; they come with the first score.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics import Coverage, ItemResult, Outcome, Report, Score

from . import errors
from .aio import AsyncClient
from .client import Client
from .errors import HallujudgeError

if TYPE_CHECKING:
    __version__: str

__all__ = [
    "AsyncClient",
    "Client",
    "Coverage",
    "HallujudgeError",
    "ItemResult",
    "Outcome",
    "Report",
    "Score",
    "__version__",
    "errors",
]


def __getattr__(name: str) -> str:
    # Looking the version up reads the installed metadata, which costs more than the whole import.
    if name == "__version__":
        from hallujudge.judge_service.version import __version__

        return __version__
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
