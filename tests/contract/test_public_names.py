"""The public names, pinned: adding one is a decision, losing one is a break."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re

import pytest

NAMES = {
    "hallujudge.sdk": [
        "Analysis",
        "AnalysisTable",
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
        "ExampleArchive",
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
        "PaperTable",
        "PreparedRun",
        "References",
        "RemoteBackend",
        "Report",
        "Response",
        "ResponseScore",
        "Responses",
        "RunFolder",
        "RunHeader",
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
        "Scorer",
        "ScoringBackend",
        "Secret",
        "ServerInfo",
        "ShippedGraph",
        "StoredRun",
        "TableCell",
        "TableLayout",
        "Timeouts",
        "__version__",
        "add_benchmarks",
        "analyze",
        "calibrate",
        "changed_items",
        "compare",
        "errors",
        "example_archives",
        "gate",
        "inspect_archives",
        "leaderboard",
        "leaderboards",
        "merge_runs",
        "paper_table",
        "read_items",
        "read_run",
        "recompute",
        "remove_benchmarks",
        "rescore_run",
        "score_all",
        "write_example",
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
        "PermissionDeniedError",
        "UnauthenticatedError",
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


def test_dir_shows_the_public_names() -> None:
    loaded = importlib.import_module("hallujudge.sdk")
    assert dir(loaded) == NAMES["hallujudge.sdk"]


@pytest.mark.parametrize("name", ["Client", "AsyncClient"])
def test_signatures_name_public_types(name: str) -> None:
    """A type that a client's method takes or returns can be imported from the SDK."""
    loaded = importlib.import_module("hallujudge.sdk")
    methods = inspect.getmembers(getattr(loaded, name), inspect.isfunction)
    named = {
        word
        for method, function in methods
        if not method.startswith("_")
        for parameter in (*inspect.signature(function).parameters.values(), None)
        for word in re.findall(
            r"\b[A-Z][A-Za-z]+",
            str(
                parameter.annotation if parameter else inspect.signature(function).return_annotation
            ),
        )
    }
    assert named - {"Iterable", "Mapping", "None", "Path", "Sequence", "Self"} <= {*loaded.__all__}


def test_a_clients_arguments_are_the_fields_of_a_run() -> None:
    from hallujudge.sdk import AsyncClient, Client, ScoreRun

    fields = [field.name for field in dataclasses.fields(ScoreRun)]
    for method in (Client.score, AsyncClient.score, Client.judge, Client.estimate):
        assert list(inspect.signature(method).parameters)[1:] == fields


def test_client_and_async_client_have_the_same_methods() -> None:
    from hallujudge.sdk import AsyncClient, Client

    def public(cls: type) -> set[str]:
        return {name for name in dir(cls) if not name.startswith("_")}

    assert public(Client) == public(AsyncClient)
