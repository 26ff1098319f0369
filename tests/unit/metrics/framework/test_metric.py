"""What metrics declare: options, columns, scores, and rows of papers' tables."""

from __future__ import annotations

import pytest

from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.metrics.families import metric_names
from hallujudge.metrics.framework.metric import OptionDefinition
from hallujudge.metrics.framework.papers import printed_names, published_rows


def test_help_has_the_choices_or_as_many_as_fit_on_a_line() -> None:
    few = OptionDefinition(name="x", default="a", choices=("a", "b", "c"), meaning="What it is.")
    assert few.help == "What it is: a, b or c."
    words = tuple(f"choice-{number}" for number in range(20))
    many = OptionDefinition(name="x", default="a", choices=words, meaning="What it is.")
    assert many.help == "What it is: choice-0, choice-1, choice-2, choice-3, ..."
    assert len(many.help) <= 60
    two = OptionDefinition(name="x", default="a", choices=words[:2], meaning="What it is." * 6)
    assert two.help.endswith(": choice-0 or choice-1.")
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
    assert len({score.name for score in metric.score_definitions}) == len(metric.score_definitions)


def test_a_metric_says_which_shared_methods_it_replaces() -> None:
    pope, hallusion = (metric_entry(name).metric for name in ("pope", "hallusion-bench"))
    assert [pope.overrides("expand"), hallusion.overrides("expand")] == [False, True]
    assert [pope.overrides("cluster"), hallusion.overrides("cluster")] == [False, True]
    # A name of no method is a slip, which must not mean "as the others".
    with pytest.raises(ValueError, match="not enough values"):
        pope.overrides("no_such_method")


@pytest.mark.parametrize("name", metric_names())
def test_an_option_is_declared_once(name: str) -> None:
    names = [option.name for option in metric_entry(name).options]
    assert len(names) == len(set(names))


WITH_TABLES = (
    "chair",
    "pope",
    "tri-he",
    "mementos",
    "vidhal-mcqa",
    "vidhal-ordering",
    "infact",
)


# Benchmarks whose own tables are pictures, or a leaderboard's.
WITH_ROWS = [
    name
    for name in metric_names()
    if published_rows(metric_entry(name).metric) and name not in WITH_TABLES
]


@pytest.mark.parametrize("metric", [*WITH_TABLES, *WITH_ROWS])
def test_rows_have_scores_of_the_metric_and_a_source(metric: str) -> None:
    declared = metric_entry(metric).metric
    rows = published_rows(declared)
    assert len({row.name for row in rows}) == len(rows) > (10 if metric in WITH_TABLES else 0)
    highest = {score.name: score.high for score in declared.score_definitions}
    for row in rows:
        assert all(0 <= value <= highest[name] for name, value in row.scores.items())
    where = "table" if metric in WITH_TABLES else "arXiv"
    assert all(row.model and where in row.source for row in rows)


@pytest.mark.parametrize(
    ("metric", "name", "scores"),
    [
        ("chair", "llava-short", {"chair_i": 0.105, "chair_s": 0.327}),
        ("pope", "instructblip-adversarial", {"f1": 0.7845, "yes_ratio": 0.6897}),
        ("tri-he", "minigpt-4-by-gpt-4", {"hallu_i": 0.536, "relation_hallu_q": 0.2498}),
        ("tri-he", "llava-by-matcher", {"hallu_i": 0.5449, "hallu_q": 0.5151}),
        ("tri-he", "llama-3.2-by-llama-3.3", {"hallu_i": 0.3898, "hallu_q": 0.3737}),
        ("tri-he", "llava-1.5-vcd-by-llama-3.3", {"hallu_i": 0.2889, "hallu_q": 0.3064}),
        ("mementos", "instructblip-combined-daily-life", {"object_precision": 0.4114}),
        ("vidhal-mcqa", "gpt-4o", {"accuracy": 0.772}),
        ("vidhal-ordering", "gpt-4o-relative", {"ndcg": 0.826}),
        ("mmhal", "minicpm-o-2.6", {"average_score": 3.8}),
        ("object-halbench", "gpt-4v", {"chair_s_refined": 0.136, "chair_i": 0.073}),
        ("infact", "gpt-5.1-factuality", {"base_accuracy": 0.678, "tss": 0.402}),
    ],
)
def test_values_are_those_of_the_tables(metric: str, name: str, scores: dict[str, float]) -> None:
    (row,) = (row for row in published_rows(metric_entry(metric).metric) if row.name == name)
    assert {key: row.scores[key] for key in scores} == scores


FIVE = ("chair", "pope", "tri-he", "mementos", "vidhal-mcqa", "vidhal-ordering", "infact")


@pytest.mark.parametrize("name", FIVE)
def test_scores_of_the_papers_have_the_names_that_are_printed(name: str) -> None:
    metric = metric_entry(name).metric
    printed = printed_names(metric)
    assert printed
    assert printed.keys() <= {score.name for score in metric.score_definitions}
    assert set(metric.ranked_by) <= printed.keys()


def test_a_reader_of_table_2_finds_its_names() -> None:
    printed = printed_names(metric_entry("tri-he").metric)
    assert printed["hallu_q"] == "Hallu_Q, Overall, Table 2"
    assert printed["relation_hallu_i"] == "Hallu_I, Relation, Table 2"
    assert printed_names(metric_entry("amber").metric) == {}
