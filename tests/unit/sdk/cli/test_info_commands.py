"""``hallujudge metrics`` prints what metrics declare, ``hallujudge doctor`` what does not work."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from msgspec import structs
from support.messages import expected_message
from support.running import here

from hallujudge.judge_service import EXTRA_MODULES
from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.judge_service.server.judge_servicer import metric_info
from hallujudge.metrics.families import metric_names
from hallujudge.sdk.cli import installation_checks, main


def test_the_list_names_every_metric(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    starts = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert starts == list(metric_names())
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("name", metric_names())
def test_a_page_shows_everything_in_80_columns(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["metrics", "show", name]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    entry = metric_entry(name)
    words = text.split()
    assert all(name in words for name in entry.variants)
    assert all(score.name in words for score in entry.metric.score_definitions)
    assert all(option.name in words for option in entry.options)
    assert all(column.name in words for column in entry.metric.columns)
    assert all(name in words for name in entry.metric.signature_names())


@pytest.mark.parametrize("name", metric_names())
def test_json_and_the_wire_say_the_same(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "show", name, "--format", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    message = metric_info(metric_entry(name))
    assert shown["summary"] == message.summary
    assert [score["meaning"] for score in shown["scores"]] == [s.meaning for s in message.scores]
    assert [score["direction"] for score in shown["scores"]] == [
        s.direction for s in message.scores
    ]
    assert [score["unit"] for score in shown["scores"]] == [s.unit for s in message.scores]
    assert [option["default"] for option in shown["options"]] == [
        option.default_value for option in message.options
    ]
    assert [v["name"] for v in shown["variants"]] == [v.name for v in message.variants]
    assert [p["title"] for p in shown["papers"]] == [p.title for p in message.papers]
    assert [s["name"] for s in shown["statistics"]] == [s.name for s in message.statistics]
    assert shown["ranked_by"] == list(message.ranked_by)
    assert shown["ranking_source"] == message.ranking_source


def test_an_unknown_metric_lists_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "show", "bleu"]) == 2
    assert "chair" in capsys.readouterr().err
    assert main(["metrics", "list", "--format", "xml"]) == 2
    assert "table, json" in capsys.readouterr().err


@pytest.fixture
def only_pope(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try one metric and no graphs: the others take seconds."""
    monkeypatch.setattr(installation_checks, "metric_names", lambda: ["pope"])
    monkeypatch.setattr(installation_checks, "shipped_graphs", lambda: [])


@pytest.mark.usefixtures("only_pope")
def test_a_wrong_score_of_a_metrics_example_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = metric_entry("pope")
    wrong = replace(entry, trial=structs.replace(entry.trial, value=0.25))
    monkeypatch.setattr(installation_checks, "metric_entry", lambda _name: wrong)
    run = here("doctor")
    assert run.returncode == 1
    assert (
        expected_message("sdk.cli.installation_checks:failed-metric-pope-here-f1-of-small")
    ) in run.stdout


@pytest.mark.usefixtures("only_pope")
def test_what_a_judge_lacks_is_named_by_its_option() -> None:
    run = here("doctor", "--llm-url", "http://127.0.0.1:1/v1")
    assert run.returncode == 1
    assert "set --llm-model" in run.stdout
    assert run.stdout.endswith("\nfailed: llm judge\n")


@pytest.mark.usefixtures("only_pope")
def test_a_missing_optional_part_is_named_with_its_command_and_does_not_fail(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(EXTRA_MODULES, "draw", ("a_module_that_nobody_has",))
    run = here("doctor")
    assert run.returncode == 0
    lines = [line for line in run.stdout.splitlines() if "extra draw:" in line]
    assert len(lines) == 1, run.stdout
    assert lines[0].startswith("absent  extra draw: a_module_that_nobody_has missing: pip install ")
    assert "resvg" in lines[0]


def test_papers_are_cited_once_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "cite", "chair", "object-halbench"]) == 0
    text = capsys.readouterr().out
    assert re.findall(r"^@\w+\{(.+),$", text, re.MULTILINE) == ["rohrbach2018object", "yu2024rlhf"]
    assert "  author = {Anna Rohrbach and Lisa Anne Hendricks and " in text
    assert "  booktitle = {EMNLP},\n  year = {2018},\n  eprint = {1809.02156},\n" in text
    assert main(["metrics", "cite"]) == 0
    entries = capsys.readouterr().out.split("\n\n")
    assert len({entry.partition(",")[0] for entry in entries}) == len(entries)
    assert main(["metrics", "cite", "bleu"]) == 2


@pytest.mark.parametrize("name", metric_names())
def test_every_metric_names_papers_that_can_be_cited(name: str) -> None:
    papers = metric_entry(name).metric.papers
    assert papers
    for paper in papers:
        assert paper.link.startswith("arXiv:")
        assert paper.names.split()[-1]
        assert paper.names.partition(",")[0].endswith(paper.authors.split()[0])
        assert not paper.venue or paper.venue[-4:].isdigit()
