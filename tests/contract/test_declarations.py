"""Help, HTML page, ListMetrics and result files agree with the metrics' declarations."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest
from support.metric_runs import RUNS

from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.judge_service.engine.responses import RESPONSE_OPTIONS
from hallujudge.judge_service.engine.spec import known_metric
from hallujudge.judge_service.server.judge_servicer import metric_info
from hallujudge.metrics import ItemResult
from hallujudge.metrics.families import FAMILIES, benchmarks_of, metric_names
from hallujudge.sdk import Client
from hallujudge.sdk.cli import command_tree
from hallujudge.sdk.report import HtmlPage
from hallujudge.sdk.schemas import item_schema, report_schema

ROOT = Path(__file__).resolve().parents[2]
TREE: Any = command_tree()
# Every score command declares these itself: one is a flag, the other also takes files.
SHARED = {option.name for option in RESPONSE_OPTIONS}


def names_all(text: str, choices: tuple[str, ...]) -> bool:
    """Return whether a help text names all choices, or the first ones and that there are more."""
    if not text.endswith(", ..."):
        return all(choice in text for choice in choices)
    first = text.removesuffix(", ...").rpartition(": ")[2].split(", ")
    return 2 <= len(first) < len(choices) and tuple(first) == choices[: len(first)]


@pytest.mark.parametrize("name", metric_names())
def test_the_help_is_the_declaration(name: str) -> None:
    entry = metric_entry(name)
    shown = {param.name: param for param in TREE.commands["score"].commands[name].params}
    for option in entry.options:
        if option.name in SHARED:
            continue
        parameter = shown[option.name]
        # A flag is given or not; what a caller of the API writes is no part of its help.
        is_flag = option.choices == ("no", "yes")
        assert parameter.help == (option.meaning if is_flag else option.help)
        unset = option.number or option.file
        assert parameter.default == (False if is_flag else None if unset else option.default)
        assert is_flag or names_all(parameter.help, option.choices), parameter.help
    variant = shown["variant"]
    assert variant.default == entry.variants[0]
    assert names_all(variant.help, entry.variants)


@pytest.mark.parametrize("name", metric_names())
def test_help_of_response_options_is_the_declaration(name: str) -> None:
    shown = {param.name: param for param in TREE.commands["score"].commands[name].params}
    meanings = {option.name: option.meaning.rstrip(".") for option in RESPONSE_OPTIONS}
    assert shown["count_empty"].help.startswith(meanings["count_empty"])
    assert shown["failure_text"].help.startswith(meanings["failure_texts"])


@pytest.mark.parametrize("name", metric_names())
def test_every_metric_declares_which_scores_rank_models(name: str) -> None:
    metric = metric_entry(name).metric
    directions = {score.name: score.direction for score in metric.score_definitions}
    # A benchmark of another package is checked when it is added, by the same rules.
    assert metric.ranked_by
    assert all(directions[score] in ("higher", "lower") for score in metric.ranked_by)
    assert metric.ranking_source.endswith(".")


def test_the_page_of_metrics_says_which_scores_rank_models(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(ROOT / "tools" / "site")
    from metrics_tables import with_metrics

    _, *sections = with_metrics("<!-- metrics -->").split("## `")
    for name, section in zip(metric_names(), sections, strict=True):
        metric = metric_entry(name).metric
        assert f"Models are ranked by `{metric.ranked_by[0]}`" in section
        assert metric.ranking_source in section


def test_the_page_of_python_has_every_declared_benchmark_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(ROOT / "tools" / "site")
    from metrics_tables import with_metrics

    page = with_metrics((ROOT / "docs" / "reference" / "python" / "metrics.md").read_text())
    modules = re.findall(r"^::: hallujudge\.metrics\.(\w+)$", page, re.MULTILINE)
    for family in filter(benchmarks_of, FAMILIES):
        assert modules.count(family) == 1 or f"metrics.{family}." in page, family


@pytest.mark.parametrize("name", metric_names())
def test_list_metrics_is_the_declaration(name: str) -> None:
    entry = metric_entry(name)
    message = metric_info(entry)
    assert [
        (option.name, option.default_value, tuple(option.choices), option.meaning)
        for option in message.options
    ] == [
        (option.name, option.default, option.choices, option.sentence) for option in entry.options
    ]
    assert [
        (score.name, score.meaning, score.unit, score.direction) for score in message.scores
    ] == [
        (score.name, score.meaning, score.unit, score.direction)
        for score in entry.metric.score_definitions
    ]
    assert (*message.ranked_by,) == entry.metric.ranked_by
    assert message.ranking_source == entry.metric.ranking_source


# Options that some scores of a metric need.
WITH_ALL_SCORES = {"chair": {"count": "objects"}}


@pytest.mark.parametrize("name", metric_names())
def test_results_and_their_page_have_the_declared_names(name: str) -> None:
    results: list[ItemResult] = []
    page = HtmlPage()
    with Client.embedded() as client:
        run = RUNS[name]()
        run["options"] = {**run.get("options", {}), **WITH_ALL_SCORES.get(name, {})}
        report = client.score(name, on_batch=lambda batch: results.extend(batch.results), **run)
    scores = {score.name: score for score in metric_entry(name).metric.score_definitions}
    columns = {column.name for column in metric_entry(name).metric.columns if not column.label}
    assert set(report.scores) == set(scores)
    assert columns <= set(report.totals)
    text = html.unescape(page.render(report))
    assert all(score.sentence in text for score in scores.values())
    for result in results:
        assert set(result.scores) <= set(scores)


def test_schemas_take_names_from_the_report() -> None:
    # A schema that listed names of scores or statistics would be a second declaration.
    report, item = report_schema()["properties"], item_schema()["properties"]
    for described in (report["scores"], report["totals"], item["scores"], item["statistics"]):
        assert "properties" not in described
        assert described["additionalProperties"]


@pytest.mark.parametrize("name", metric_names())
def test_a_client_knows_the_metric_that_the_engine_has(name: str) -> None:
    """Without the engine: its class, the default groups, and the first role of its graphs."""
    entry = metric_entry(name)
    assert known_metric(name) is entry.metric
    assert entry.graph_roles[:1] in ((), ("objects",))
