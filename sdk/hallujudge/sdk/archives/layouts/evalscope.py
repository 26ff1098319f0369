"""Predictions and reviews of EvalScope (since 1.0): a file for each subset of a benchmark.

A prediction holds the model's output; a review, the conversation and the tool's own score. Both
have what the benchmark knows of a sample: of POPE the label under ``answer``, of HallusionBench all
its keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .archive_reader import (
    ArchiveReader,
    converting,
    first_text,
    mapping_at,
    yes_or_no,
)
from .harnesses import response_of_output, user_question

_PREDICTION = ("index", "model_output", "messages")
_REVIEW = ("index", "sample_score", "messages")


def _known(values: Mapping[str, object]) -> Mapping[str, object]:
    """Return what the benchmark knows of a sample."""
    return mapping_at(values, "metadata") or mapping_at(
        mapping_at(values, "sample_score"), "sample_metadata"
    )


def _label(values: Mapping[str, object]) -> object:
    target = first_text(values.get("target"))
    return _known(values).get("answer") if target is None else target


def _response(values: Mapping[str, object]) -> object:
    if "model_output" in values:
        output = mapping_at(values, "model_output")
        return {"error": output["error"]} if output.get("error") else response_of_output(output)
    messages = values.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    is_answer = isinstance(last, Mapping) and last.get("role") == "assistant"
    return response_of_output({"choices": [{"message": last}]}) if is_answer else None


def _sample(values: Mapping[str, object]) -> Mapping[str, object]:
    known = {key: value for key, value in _known(values).items() if key not in ("id", "answer")}
    return {
        **known,
        "id": values.get("index"),
        "response": _response(values),
        "label": _label(values),
        "question": user_question(values.get("messages")),
    }


def _is_hallusion_bench(values: Mapping[str, object]) -> bool:
    return {"set_id", "figure_id", "gt_answer"} <= _known(values).keys()


def _readers(kind: str, keys: tuple[str, ...], **more: Any) -> tuple[ArchiveReader, ...]:
    """Return the readers of predictions or of reviews."""
    common = {
        "keys": keys,
        "convert": converting(_sample),
        "named_by_task": True,
        "may_lack_references": True,
        **more,
    }

    def reader(name: str, matches: Callable[[Mapping[str, object]], bool], **own: Any) -> Any:
        return ArchiveReader(name=f"EvalScope's {kind}{name}", matches=matches, **common, **own)

    return (
        reader(
            " of HallusionBench",
            _is_hallusion_bench,
            metrics=("hallusion-bench",),
            fields={"id": ""},
            allow_missing=True,
        ),
        reader(
            " with yes/no labels",
            lambda values: yes_or_no(_label(values)),
            metrics=("pope",),
            any_metric=True,
            only_labels=True,
        ),
        reader(
            "",
            lambda _values: True,
            any_metric=True,
            remedy="name a metric that scores its answers, and give its references with "
            "references=…",
        ),
    )


READERS = (
    *_readers("predictions", _PREDICTION, model_key="model"),
    *_readers("reviews", _REVIEW, model_key="messages.-1.model", role="companion"),
    ArchiveReader(
        name="EvalScope's report of a benchmark, which holds totals only, no responses",
        keys=("dataset_name", "model_name", "metrics"),
        shape="totals of a benchmark",
        role="companion",
        remedy="give the predictions of its run",
    ),
)
