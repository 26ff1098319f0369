"""Each metric declares what help, tables and pages show."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hallujudge.judge_service.engine.registry import metric_entry, metric_names

ROOT = Path(__file__).resolve().parents[4]


@pytest.mark.parametrize("name", metric_names())
def test_a_metric_declares_its_meaning(name: str) -> None:
    entry = metric_entry(name)
    metric = entry.metric
    assert metric.summary.endswith(".")
    assert all(paper.title and paper.authors and paper.where for paper in metric.papers)
    assert all(variant.meaning.endswith(".") for variant in metric.variants)
    assert all(option.meaning.endswith(".") for option in entry.options)
    assert all(column.meaning for column in metric.columns)
    assert all(score.meaning for score in metric.score_definitions)
    known = {column.name for column in metric.columns}
    assert len(known) == len(metric.columns)
    assert len(set(entry.score_names)) == len(entry.score_names)


@pytest.mark.parametrize("name", metric_names())
def test_an_option_is_declared_once(name: str) -> None:
    names = [option.name for option in metric_entry(name).options]
    assert len(names) == len(set(names))


@pytest.mark.repo
def test_the_readme_table_is_the_declaration() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text.partition("## Metrics")[2].partition("\n## ")[0]
    rows = {
        cells[1].strip(" `"): cells for row in table.splitlines() if (cells := row.split("|"))[1:]
    }
    for name in metric_names():
        entry = metric_entry(name)
        scores = re.findall(r"`([^`]+)`", rows[name][3])
        patterns = [re.escape(score).replace("<operator>", r"\w+") for score in scores]
        for score in entry.score_names:
            assert any(re.fullmatch(pattern, score) for pattern in patterns), score
        assert all(
            any(re.fullmatch(pattern, score) for score in entry.score_names) for pattern in patterns
        )
        assert re.findall(r"`([^`]+)`", rows[name][4]) == list(entry.variants)
        assert entry.metric.papers[0].authors.split()[0] in rows[name][2] or name == (
            "vidhal-ordering"
        )
