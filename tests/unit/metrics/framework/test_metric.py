"""What metrics declare: options, columns and scores."""

from __future__ import annotations

import pytest

from hallujudge.judge_service.engine.registry import metric_entry, metric_names
from hallujudge.metrics.framework.metric import OptionDefinition


def test_help_has_the_choices_or_as_many_as_fit_on_a_line() -> None:
    few = OptionDefinition(name="x", default="a", choices=("a", "b", "c"), meaning="What it is.")
    assert few.help == "What it is: a, b or c."
    words = tuple(f"choice-{number}" for number in range(20))
    many = OptionDefinition(name="x", default="a", choices=words, meaning="What it is.")
    assert many.help == "What it is: choice-0, choice-1, choice-2, choice-3, ..."
    assert len(many.help) <= 60
    free = OptionDefinition(name="x", default="", meaning="What it is.")
    assert free.help == "What it is."


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
