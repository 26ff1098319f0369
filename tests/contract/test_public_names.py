"""The public names, pinned: adding one is a decision, losing one is a break."""

from __future__ import annotations

import importlib

import pytest

NAMES = {
    "hallujudge.sdk": [
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
    ],
    "hallujudge.sdk.errors": [
        "ArchiveError",
        "CancelledError",
        "DeadlineError",
        "HallujudgeError",
        "InternalError",
        "InvalidInputError",
        "MissingExtraError",
        "NotFoundError",
        "OutputError",
        "OverloadedError",
        "UnavailableError",
        "UnsupportedError",
        "VersionMismatchError",
        "Violation",
    ],
    "hallujudge.judge_service.engine": [
        "Engine",
        "GraphSource",
        "InlineGraph",
        "ScoreSpec",
        "ScoringSession",
        "ShippedGraph",
        "metric_names",
    ],
}


@pytest.mark.parametrize("module", NAMES)
def test_public_names(module: str) -> None:
    loaded = importlib.import_module(module)
    assert sorted(loaded.__all__) == NAMES[module]
    assert all(hasattr(loaded, name) for name in loaded.__all__)


def test_client_and_async_client_have_the_same_methods() -> None:
    from hallujudge.sdk import AsyncClient, Client

    def public(cls: type) -> set[str]:
        return {name for name in dir(cls) if not name.startswith("_")}

    assert public(Client) == public(AsyncClient)
