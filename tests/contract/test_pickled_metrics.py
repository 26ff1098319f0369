"""Metrics in other processes: multiprocessing, joblib and Ray send them as pickles."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import pytest

from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.metrics import families
from hallujudge.metrics.answers.answers_metric import AnswersMetric
from hallujudge.metrics.families import metric_names

DECLARED = [name for name in metric_names() if issubclass(metric_entry(name).metric, AnswersMetric)]


@pytest.mark.parametrize("name", metric_names())
def test_the_class_of_a_metric_is_found_by_its_name(name: str) -> None:
    metric = metric_entry(name).metric
    assert pickle.loads(pickle.dumps(metric)) is metric


@pytest.mark.parametrize("name", DECLARED)
def test_a_metric_of_closed_questions_is_the_same_after_a_journey(name: str) -> None:
    metric: Any = metric_entry(name).metric
    for variant in metric.variants:
        sent = metric(variant=variant.name)
        assert pickle.loads(pickle.dumps(sent)) == sent


def test_another_process_scores_with_a_metric_that_it_was_sent() -> None:
    entry = metric_entry("pope")
    sent = pickle.dumps((entry.metric(variant="opera"), entry.trial.item))
    program = (
        "import pickle, sys\n"
        "metric, item = pickle.load(sys.stdin.buffer)\n"
        "sys.stdout.buffer.write(pickle.dumps(metric.score(item).scores))"
    )
    done = subprocess.run([sys.executable, "-c", program], input=sent, stdout=-1, check=True)
    assert pickle.loads(done.stdout)["accuracy"] == 1.0


def test_a_module_has_no_metric_of_a_name_that_no_benchmark_has() -> None:
    with pytest.raises(AttributeError, match="NoSuchMetric"):
        families.NoSuchMetric  # noqa: B018
