"""Adapters of harnesses, with stand-ins: tools/try_harness.py tries the real packages."""

from __future__ import annotations

import json
import math
import pickle
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hallujudge.sdk import Client, RunReport
from hallujudge.sdk.errors import InvalidInputError, MissingExtraError, NotFoundError
from hallujudge.sdk.harness_adapters import lighteval_metric, mlflow_scorer, torch_scores

CAPTIONS = ["A cat and a dog.", "A cat.", "A view.", "", "A dog on a sofa."]
OBJECTS = [["cat", "couch"]] * 5


@pytest.fixture(scope="module")
def report() -> RunReport:
    ids = list(map(str, range(5)))
    with Client.embedded() as client:
        return client.score(
            "chair",
            responses=dict(zip(ids, CAPTIONS, strict=True)),
            references=dict(zip(ids, OBJECTS, strict=True)),
        )


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, **values: Any) -> None:
    """Put a module, and the packages above it, where imports look first."""
    parts = name.split(".")
    for at in range(1, len(parts) + 1):
        path = ".".join(parts[:at])
        if not isinstance(sys.modules.get(path), SimpleNamespace):
            monkeypatch.setitem(sys.modules, path, ModuleType(path))
    vars(sys.modules[name]).update(values)


class Grouping(SimpleNamespace):
    """A metric of lighteval."""


@pytest.fixture
def lighteval(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "lighteval.metrics.metrics_sample", SampleLevelComputation=object)
    kinds = {"CorpusLevelMetricGrouping": Grouping, "SampleLevelMetricGrouping": Grouping}
    utils = SimpleNamespace(**kinds)
    stand_in(monkeypatch, "lighteval.metrics.utils", metric_utils=utils)
    methods = SimpleNamespace(GENERATIVE="generative")
    stand_in(monkeypatch, "lighteval.tasks.requests", SamplingMethod=methods)


def aggregated(metric: Any) -> dict[str, float]:
    """Do with a metric what lighteval does with it."""
    samples = [
        metric.sample_level_fn.compute(
            doc=SimpleNamespace(specific={"objects": objects}),
            model_response=SimpleNamespace(final_text=[caption]),
        )
        for caption, objects in zip(CAPTIONS, OBJECTS, strict=True)
    ]
    found: dict[str, float] = {}
    for name in metric.metric_name:
        found |= metric.corpus_level_fn[name]([sample[name] for sample in samples])
    return found


@pytest.mark.usefixtures("lighteval")
def test_lighteval(report: RunReport) -> None:
    corpus = lighteval_metric("chair", ["chair_i", "recall"], reference="objects")
    found = aggregated(corpus)
    for name in ("chair_i", "recall"):
        score = report.scores[name]
        values = [found[f"{name}{end}"] for end in ("", "_ci_low", "_ci_high")]
        assert values == [score.value, score.ci_low, score.ci_high]
    assert corpus.higher_is_better == {"chair_i": False, "recall": True}
    means = lighteval_metric("chair", ["chair_i"], reference="objects", level="sample")
    assert aggregated(means) == {"chair_i_mean": (0.5 + 0.0 + 0.5) / 3}
    named = lighteval_metric("chair", ["chair_i"], reference="objects", variant="corrected")
    own = lighteval_metric("chair", ["chair_i"], reference="objects", level="sample", prefix="b_")
    # Of two metrics with one name in a task, lighteval keeps the last.
    assert next(iter(aggregated(named))) == "corrected_chair_i"
    assert [*aggregated(own)] == ["b_chair_i_mean"]
    with pytest.raises(InvalidInputError, match="'objects'; it has nothing"):
        means.sample_level_fn.compute(
            doc=SimpleNamespace(specific=None), model_response=SimpleNamespace(final_text=["A."])
        )
    with pytest.raises(NotFoundError):
        lighteval_metric("chairs")


class Numbers(np.ndarray):
    """A tensor."""

    device = "cpu"

    def to(self, _device: str) -> Numbers:
        return self


def tensor(values: Any) -> Numbers:
    return np.array(values).view(Numbers)


class TorchMetric:
    """A metric of torchmetrics."""

    device = "cpu"

    def add_state(self, name: str, default: Any, dist_reduce_fx: str) -> None:
        assert dist_reduce_fx in ("cat", "mean")
        setattr(self, name, default)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__


@pytest.fixture
def torchmetrics(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "torchmetrics", Metric=TorchMetric)


@pytest.mark.usefixtures("torchmetrics")
def test_torchmetrics(report: RunReport) -> None:
    ranks = [torch_scores("chair", ["chair_i", "recall"], tensor=tensor) for _ in range(3)]
    ranks[0].update(CAPTIONS[:1], OBJECTS[:1])
    ranks[0].update(CAPTIONS[1:2], OBJECTS[1:2])
    ranks[1].update(CAPTIONS[2:], OBJECTS[2:])
    assert math.isnan(ranks[2].compute()["chair_i"])
    copied = pickle.loads(pickle.dumps(ranks[0]))
    assert copied.compute() == ranks[0].compute()
    # A synchronised state is one tensor of those of all ranks.
    ranks[2].states = tensor(np.concatenate([state for each in ranks for state in each.states]))
    assert ranks[2].compute() == {"chair_i": report.chair_i, "recall": report.recall}
    assert ranks[2].report().coverage == report.coverage


@pytest.fixture
def mlflow(monkeypatch: pytest.MonkeyPatch) -> None:
    made = dict.fromkeys(("AssessmentSource", "Feedback"), SimpleNamespace)
    stand_in(monkeypatch, "mlflow.entities", AssessmentError=lambda *args: args, **made)
    stand_in(monkeypatch, "mlflow.genai.scorers", scorer=lambda judged, name: (name, judged))


@pytest.mark.usefixtures("mlflow")
def test_mlflow_scores_an_output_or_says_why_not() -> None:
    name, judged = mlflow_scorer("chair", "chair_i", reference="objects")
    found = [judged(outputs=text, expectations={"objects": OBJECTS[0]}) for text in CAPTIONS]
    assert name == "chair_i"
    # MLflow makes one mean of two scorers with one name.
    for arguments, expected in (
        ({"variant": "corrected"}, "corrected_chair_i"),
        ({"prefix": "b_"}, "b_chair_i"),
    ):
        other, other_judged = mlflow_scorer("chair", "chair_i", reference="objects", **arguments)
        found_other = other_judged(outputs=CAPTIONS[0], expectations={"objects": OBJECTS[0]})
        assert other == found_other.name == expected
    assert [one.value for one in found] == [0.5, 0.0, None, None, 0.5]
    assert [one.error and one.error[0] for one in found][2:4] == [
        "SCORE_UNDEFINED",
        "RESPONSE_EMPTY",
    ]
    assert json.loads(found[0].rationale)["hallucinated"] == [["dog", "dog"]]
    with pytest.raises(InvalidInputError, match="it has truth"):
        judged(outputs="A cat.", expectations={"truth": ["cat"]})


@pytest.mark.parametrize(
    ("package", "make"),
    [
        ("lighteval", lambda: lighteval_metric("chair")),
        ("torchmetrics", lambda: torch_scores("chair", tensor=tensor)),
        ("mlflow", lambda: mlflow_scorer("chair")),
    ],
)
def test_a_harness_that_is_absent_is_named(
    monkeypatch: pytest.MonkeyPatch, package: str, make: Any
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError) as told:
        make()
    assert told.value.metadata == {"feature": package}
