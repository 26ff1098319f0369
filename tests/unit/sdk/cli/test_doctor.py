"""The findings of ``hallujudge doctor`` on an installation that has something wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.running import here

from hallujudge import synonym_graphs
from hallujudge.judge_service import installation as extras
from hallujudge.judge_service.engine import registry
from hallujudge.sdk.cli import info_commands


@pytest.fixture(autouse=True)
def only_pope(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try one metric and no graphs: the others take seconds."""
    monkeypatch.setattr(info_commands, "metric_names", lambda: ["pope"])
    monkeypatch.setattr(synonym_graphs, "shipped_graphs", lambda: [])


def test_a_wrong_score_of_a_metrics_example_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = registry.metric_entry("pope")
    wrong = replace(entry, trial=replace(entry.trial, value=0.25))
    monkeypatch.setattr(info_commands, "metric_entry", lambda _name: wrong)
    run = here("doctor")
    assert run.returncode == 1
    assert (
        "FAILED  metric pope here: accuracy of a small example is 1.0, not 0.25: "
        "this installation scores wrongly; install hallujudge again"
    ) in run.stdout


def test_a_missing_optional_part_is_named_with_its_command_and_does_not_fail(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(extras.EXTRA_MODULES, "draw", ("a_module_that_nobody_has",))
    run = here("doctor")
    assert run.returncode == 0
    lines = [line for line in run.stdout.splitlines() if "extra draw:" in line]
    assert len(lines) == 1, run.stdout
    assert lines[0].startswith("absent  extra draw: a_module_that_nobody_has missing: pip install ")
    assert "resvg" in lines[0]
