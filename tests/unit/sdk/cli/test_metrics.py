"""``hallujudge metrics`` prints what metrics declare."""

from __future__ import annotations

import json

import pytest

from hallujudge.judge_service.engine.registry import metric_entry, metric_names
from hallujudge.judge_service.server.judge_servicer import metric_info
from hallujudge.sdk.cli import main


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
    for declared in (*entry.variants, *entry.score_names):
        assert declared in words
    assert all(option.name in words for option in entry.options)
    assert all(column.name in words for column in entry.metric.columns)


@pytest.mark.parametrize("name", metric_names())
def test_json_and_the_wire_say_the_same(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "show", name, "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    message = metric_info(metric_entry(name))
    assert told["summary"] == message.summary
    assert [score["meaning"] for score in told["scores"]] == [s.meaning for s in message.scores]
    assert [score["direction"] for score in told["scores"]] == [s.direction for s in message.scores]
    assert [score["unit"] for score in told["scores"]] == [s.unit for s in message.scores]
    assert [option["default"] for option in told["options"]] == [
        option.default_value for option in message.options
    ]
    assert [v["name"] for v in told["variants"]] == [v.name for v in message.variants]
    assert [p["title"] for p in told["papers"]] == [p.title for p in message.papers]
    assert [s["name"] for s in told["statistics"]] == [s.name for s in message.statistics]


def test_an_unknown_metric_lists_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "show", "bleu"]) == 2
    assert "chair" in capsys.readouterr().err
    assert main(["metrics", "list", "--format", "xml"]) == 2
    assert "table, json" in capsys.readouterr().err
