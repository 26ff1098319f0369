"""Dashboards and alerts name metrics that exist, in expressions that Prometheus reads."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD = ROOT / "deploy/grafana/dashboards/hallujudge.json"
ALERTS = ROOT / "deploy/prometheus/alerts.yml"
ALERTS_TEST = ROOT / "deploy/prometheus/alerts_test.yml"
PAGE = ROOT / "docs/how-to/operate-a-server.md"
# What Prometheus itself writes.
ITS_OWN = {"up"}
SUFFIXES = {"counter": ["_total"], "histogram": ["_bucket", "_count", "_sum"], "gauge": [""]}


def exported() -> set[str]:
    """Return the names of the samples that a server exports."""
    from hallujudge.judge_service.observe.prometheus import MetricsRecorder, Readings, new_registry

    registry = new_registry(
        Readings(
            memory_held=lambda: 0,
            memory_limit=0,
            running_limit=0,
            waiting_limit=0,
            judges=list,
            well=lambda: True,
            check_seconds=lambda: 0.0,
        )
    )
    MetricsRecorder(registry)
    families = [family for family in registry.collect() if family.type in SUFFIXES]
    return {family.name + suffix for family in families for suffix in SUFFIXES[family.type]}


def alerts() -> list[dict[str, Any]]:
    [group] = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def expressions() -> Iterator[str]:
    for panel in json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]:
        for target in panel["targets"]:
            yield target["expr"].replace("$__rate_interval", "1m")
    for rule in alerts():
        yield rule["expr"]


def named(expression: str) -> set[str]:
    """Return the metrics of an expression, which Prometheus' grammar has to accept."""
    tree = promql_parser.parse(expression).prettify()
    plain = re.sub(r"\{[^}]*\}|\b(?:by|on)\s*\([^)]*\)", "", tree)
    return set(re.findall(r"\b(?:hallujudge|process|vllm)[\w:]*|\bup\b", plain))


def test_every_metric_of_an_expression_is_exported() -> None:
    known = exported() | ITS_OWN
    for expression in expressions():
        names = named(expression)
        assert names, expression
        assert names <= known, expression


def test_every_metric_is_shown_or_described() -> None:
    ours = {name for name in exported() if name.startswith("hallujudge_")}
    page = PAGE.read_text(encoding="utf-8")
    described = set(re.findall(r"`(hallujudge_\w+)`", page))
    families = {re.sub(r"_(bucket|count|sum)$", "", name) for name in ours}
    assert described == families


def test_each_alert_says_what_happened_and_the_page_says_what_to_do() -> None:
    page = PAGE.read_text(encoding="utf-8")
    headings = set(re.findall(r"^### (\w+)$", page, re.MULTILINE))
    names = [rule["alert"] for rule in alerts()]
    assert len(names) == len(set(names))
    assert {name for name in headings if name.startswith("Hallujudge")} == set(names)
    for rule in alerts():
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert rule["annotations"]["summary"].endswith(".")


def test_each_alert_is_tried_firing_and_silent() -> None:
    cases = [
        (case["alertname"], bool(case.get("exp_alerts")))
        for test in yaml.safe_load(ALERTS_TEST.read_text(encoding="utf-8"))["tests"]
        for case in test["alert_rule_test"]
    ]
    assert set(cases) == {(rule["alert"], fires) for rule in alerts() for fires in (True, False)}


def test_prometheus_says_that_alerts_fire_and_are_silent() -> None:
    if (promtool := shutil.which("promtool")) is None:
        pytest.skip("no promtool")
    done = subprocess.run(
        [promtool, "test", "rules", ALERTS_TEST], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_panels_have_ids_and_places_of_their_own() -> None:
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(places)) == len(places)
    assert max(x for x, _ in places) < 24
    # The file of data sources has the name that panels use.
    source = ROOT / "deploy/grafana/provisioning/datasources/prometheus.yaml"
    [known] = yaml.safe_load(source.read_text(encoding="utf-8"))["datasources"]
    assert {panel["datasource"]["uid"] for panel in panels} == {known["uid"]}
