"""Adapters of evaluation harnesses: lmms-eval, lighteval, torchmetrics, MLflow GenAI.

Each returns what the harness calls, and imports the harness when it is made. Aggregates are those
of a report over the same responses (:mod:`hallujudge.sdk.harness_scores`). Inspect AI has its
scorers in ``inspect_scorers.py``, and ``evaluate`` its module in ``evaluate_module.py``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hallujudge.sdk.errors import InvalidInputError, MissingExtraError
from hallujudge.sdk.scorer import Scorer

from ..harness_scores import RunningScores, report_of, scored_records, scores_with_intervals

__all__ = ["LMMS_TASKS", "lighteval_metric", "lmms_results", "mlflow_scorer", "torch_scores"]

LMMS_TASKS = Path(__file__).with_name("lmms_eval_tasks")
"""Folder of tasks for lmms-eval's ``--include_path``: ``hallujudge_chair``, ``hallujudge_pope``."""

# In front of each state that processes exchange: its length, as little-endian bytes.
_LENGTH = 8


def lmms_results(
    metric: str,
    scores: Sequence[str] = (),
    *,
    reference: str,
    group: str = "",
    **arguments: Any,
) -> Callable[[Mapping[str, Any], Sequence[str]], dict[str, Any]]:
    """Return ``process_results`` of a task of lmms-eval.

    The ``aggregation`` of each score is ``hallujudge.sdk.harness_scores.corpus_score``.

    Args:
        metric: The metric's name.
        scores: Names of the scores, those of the task's ``metric_list``; empty for the main score.
        reference: Key of the reference in a document.
        group: Key of the image or video; empty if no two documents share one.
        **arguments: Arguments of :class:`Scorer`, such as ``server``.

    Raises:
        HallujudgeError: An argument is wrong; see :class:`Scorer`.
    """
    # A harness runs for hours: an outage leaves samples unscored, and does not end it.
    scorer = Scorer(metric, scores=scores, on_failure="none", **arguments)

    def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
        shared = str(doc.get(group) or "")
        return dict(scored_records(scorer, results[0], _found(doc, reference), group=shared))

    return process_results


def _found(values: Mapping[str, Any], key: str) -> Any:
    """Return the reference of a sample.

    Raises:
        InvalidInputError: The sample does not have the key.
    """
    if key not in values:
        raise InvalidInputError(
            f"a sample has no {key!r:.80}; it has {', '.join(map(str, values)) or 'nothing'}"
        )
    return values[key]


def lighteval_metric(
    metric: str,
    scores: Sequence[str] = (),
    *,
    reference: str = "reference",
    level: Literal["corpus", "sample"] = "corpus",
    prefix: str = "",
    **arguments: Any,
) -> Any:
    """Return a metric for the ``metrics`` of a task of lighteval.

    Args:
        metric: The metric's name.
        scores: Names of the scores; empty for the main score.
        reference: Key of the reference in a document's ``specific``.
        level: Whether scores are over all responses together, with the ends of their intervals, or
            means over scored responses, which are named ``<score>_mean``.
        prefix: What the names of scores begin with; of two with one name in a task, lighteval
            keeps the last. Empty for the variant, if one is given.
        **arguments: Arguments of :class:`Scorer`, such as ``server``.

    Raises:
        HallujudgeError: An argument is wrong; see :class:`Scorer`.
        MissingExtraError: lighteval is not installed.
    """
    with MissingExtraError.unless_package("lighteval"):
        from lighteval.metrics.metrics_sample import SampleLevelComputation
        from lighteval.metrics.utils import metric_utils
        from lighteval.tasks.requests import SamplingMethod
    scorer = Scorer(metric, scores=scores, on_failure="none", **arguments)
    corpus = level == "corpus"
    prefix = prefix or _prefix_of(arguments)
    end = "" if corpus else "_mean"
    names = {score: f"{prefix}{score}{end}" for score in scorer.scores}

    class Records(SampleLevelComputation):  # type: ignore[misc]  # lighteval may be absent
        def compute(self, doc: Any, model_response: Any, **_: object) -> dict[str, str]:
            given = _found(doc.specific or {}, reference)
            records = scored_records(scorer, model_response.final_text[0], given)
            # As texts, since lighteval writes tables, whose cells must be alike.
            return {names[score]: json.dumps(record) for score, record in records.items()}

    kind = (
        metric_utils.CorpusLevelMetricGrouping if corpus else metric_utils.SampleLevelMetricGrouping
    )
    return kind(
        metric_name=list(names.values()),
        higher_is_better={
            name: scorer.definition(score).direction == "higher" for score, name in names.items()
        },
        category=SamplingMethod.GENERATIVE,
        sample_level_fn=Records(),
        corpus_level_fn={
            name: partial(_corpus_of, prefix) if corpus else partial(_mean_of, name)
            for name in names.values()
        },
    )


def _prefix_of(arguments: Mapping[str, Any]) -> str:
    """Return what names begin with: a host keeps two scores of one name as one."""
    variant = arguments.get("variant")
    return f"{variant}_" if variant else ""


def _corpus_of(prefix: str, texts: Sequence[str]) -> dict[str, float]:
    """Return the score of lighteval's samples over all of them, with its interval."""
    records = list(map(json.loads, texts))
    found = scores_with_intervals(report_of(records), [records[0]["name"]])
    return {f"{prefix}{name}": value for name, value in found.items()}


def _mean_of(name: str, texts: Sequence[str]) -> dict[str, float]:
    """Return the mean score of lighteval's samples; NaN if none has one."""
    records = list(map(json.loads, texts))
    values = [record["score"] for record in records if "score" in record]
    return {name: float(np.mean(values)) if values else float("nan")}


def torch_scores(
    metric: str, scores: Sequence[str] = (), *, tensor: Callable[[Any], Any], **arguments: Any
) -> Any:
    """Return a metric of torchmetrics, whose state is merged over all ranks.

    ``update`` takes what :meth:`RunningScores.update` does, ``compute`` returns a tensor for each
    score, and ``report`` the report over the responses of this rank.

    Args:
        metric: The metric's name.
        scores: Names of the scores; empty for the main score.
        tensor: What makes tensors: ``torch.tensor``.
        **arguments: Arguments of :class:`Scorer`, such as ``server``.

    Raises:
        HallujudgeError: An argument is wrong; see :class:`Scorer`.
        MissingExtraError: torchmetrics is not installed.
    """
    with MissingExtraError.unless_package("torchmetrics"):
        from torchmetrics import Metric
    scorer = Scorer(metric, scores=scores, **arguments)

    class TorchScores(Metric):  # type: ignore[misc]  # torchmetrics may be absent
        # Otherwise torchmetrics would score every batch of forward() twice.
        full_state_update = False
        is_differentiable = False

        def __init__(self) -> None:
            super().__init__()
            self.add_state("states", default=[], dist_reduce_fx="cat")
            # A collection updates only one of metrics whose states are equal after the first
            # batch, and shares its states with the others. NaN is equal to nothing.
            self.add_state("unequal", default=tensor(float("nan")), dist_reduce_fx="mean")

        def __reduce__(self) -> tuple[Any, ...]:
            # The class is made where the copy is.
            made = (_torch_scores, (metric, tuple(scores), tensor, arguments))
            return (*made, self.__getstate__())

        def update(self, *given: Any, **keywords: Any) -> None:
            """Score responses and add them."""
            batch = RunningScores.of(scorer)
            batch.update(*given, **keywords)
            state = batch.state()
            framed = len(state).to_bytes(_LENGTH, "little") + state
            # A rank without responses exchanges numbers of four bytes.
            numbers = np.frombuffer(framed, np.uint8).astype(np.float32)
            self.states.append(tensor(numbers).to(self.device))

        def compute(self) -> dict[str, Any]:
            """Return each score; NaN if it is undefined."""
            found = self.report().scores
            values = {name: found[name].value for name in scorer.scores}
            return {
                name: tensor(np.float64(np.nan if value is None else value))
                for name, value in values.items()
            }

        def report(self) -> Any:
            """Return the report over all responses of this rank; in ``compute``, of all ranks."""
            running = RunningScores.of(scorer)
            # After an exchange between ranks, torchmetrics has joined the list to one tensor.
            states = self.states if isinstance(self.states, list) else [self.states]
            for numbers in states:
                rest = bytes(map(int, numbers.tolist()))
                while rest:
                    end = _LENGTH + int.from_bytes(rest[:_LENGTH], "little")
                    running.merge(rest[_LENGTH:end])
                    rest = rest[end:]
            return running.report()

    return TorchScores()


def _torch_scores(
    metric: str, scores: Sequence[str], tensor: Callable[[Any], Any], arguments: Mapping[str, Any]
) -> Any:
    return torch_scores(metric, scores, tensor=tensor, **arguments)


def mlflow_scorer(
    metric: str,
    score: str = "",
    *,
    reference: str = "reference",
    prefix: str = "",
    **arguments: Any,
) -> Any:
    """Return a scorer for ``mlflow.genai.evaluate(scorers=[…])``.

    An output without a score has an error with the reason in place of a value. The evidence is the
    rationale.

    Args:
        metric: The metric's name.
        score: The score's name; empty for the metric's main score.
        reference: Key of the reference in a row's ``expectations``.
        prefix: What the name begins with; of two scorers with one name, MLflow makes one mean.
            Empty for the variant, if one is given.
        **arguments: Arguments of :class:`Scorer`, such as ``server``.

    Raises:
        HallujudgeError: An argument is wrong; see :class:`Scorer`.
        MissingExtraError: MLflow is not installed.
    """
    with MissingExtraError.unless_package("mlflow"):
        from mlflow.entities import AssessmentError, AssessmentSource, Feedback
        from mlflow.genai.scorers import scorer

    made = Scorer(metric, scores=[score] if score else (), on_failure="none", **arguments)
    (wanted,) = made.scores
    name = f"{prefix or _prefix_of(arguments)}{wanted}"

    def judged(outputs: Any, expectations: Mapping[str, Any]) -> Any:
        [found] = made([outputs], [_found(expectations, reference)])
        value, reason = found.scores[wanted], found.reason or "SCORE_UNDEFINED"
        return Feedback(
            name=name,
            value=value,
            error=AssessmentError(str(reason), found.detail) if value is None else None,
            rationale=json.dumps(found.evidence, ensure_ascii=False),
            source=AssessmentSource(source_type="CODE", source_id=f"hallujudge/{metric}"),
        )

    return scorer(judged, name=name)
