"""Sample files of lmms-eval (``--log_samples``).

The layout changed several times: one object with ``logs`` (until 0.2.3), a line for each sample
with ``doc`` (until 0.3.5), without it (since 0.4), and with flat responses (since 0.7). Readers
therefore take each value from wherever a release put it. Since 0.4 the label is only in the values
of scores. A question id appears once in each category, so ``doc_id`` is the id.
"""

from __future__ import annotations

from collections.abc import Mapping

from .reader import ArchiveReader, converting, first_text, mapping_at, only_label, yes_or_no

__all__ = ["READERS"]

_POPE_SCORES = (
    "pope_accuracy",
    "pope_precision",
    "pope_recall",
    "pope_f1_score",
    "pope_yes_ratio",
)
_CHAIR_SCORES = ("coco_cap_chair_i", "coco_cap_chair_s", "coco_cap_chair_recall")
_AMBER_SCORES = ("amber_chair", "amber_cover", "amber_hal", "amber_cog")
_HALLUSION_BENCH_SCORES = ("aAcc", "fAcc", "qAcc")


def _score(values: Mapping[str, object], names: tuple[str, ...]) -> Mapping[str, object]:
    """Return the value of the first score that holds the sample's own data."""
    return next((inner for name in names if (inner := mapping_at(values, name))), {})


def _response(values: Mapping[str, object]) -> object:
    """Return the response; the raw ones are left out where they equal the filtered ones."""
    for key in ("filtered_resps", "resps"):
        if (found := first_text(values.get(key))) is not None:
            return found
    return None


def _prompt(values: Mapping[str, object]) -> object:
    prompt = first_text(values.get("input", values.get("arguments")))
    return prompt if isinstance(prompt, str) else None


def _image(doc: Mapping[str, object]) -> object:
    named = (doc.get(key) for key in ("image_source", "image_id", "image", "image_path"))
    return next((name for name in named if isinstance(name, (str, int))), None)


def _pope(values: Mapping[str, object]) -> Mapping[str, object]:
    score, doc = _score(values, _POPE_SCORES), mapping_at(values, "doc")
    response = _response(values)
    label = score.get("ground_truth", doc.get("answer"))
    return {
        "id": values.get("doc_id", score.get("question_id")),
        "question_id": score.get("question_id", doc.get("question_id")),
        "response": score.get("prediction") if response is None else response,
        "label": only_label(values.get("target")) if label is None else label,
        "question": doc.get("question", _prompt(values)),
        "image": _image(doc),
        "category": doc.get("category"),
    }


def _chair(values: Mapping[str, object]) -> Mapping[str, object]:
    score = _score(values, _CHAIR_SCORES)
    return {
        "id": score.get("image_id"),
        "image_id": score.get("image_id"),
        "response": _response(values),
        "reference_objects": score.get("answer"),
    }


def _hallusion_bench(values: Mapping[str, object]) -> Mapping[str, object]:
    score = _score(values, _HALLUSION_BENCH_SCORES)
    response = _response(values)
    given = score.get("model_prediction") if response is None else response
    return {**mapping_at(values, "doc"), **score, "response": given}


def _amber(values: Mapping[str, object]) -> Mapping[str, object]:
    """Return an AMBER sample; without ``doc`` its id is its position, as in the benchmark.

    The counters tell how many objects the image has, so that the metric's reader can check the id.
    """
    doc, counters = mapping_at(values, "doc"), _score(values, _AMBER_SCORES)
    number = values.get("doc_id")
    position = number + 1 if isinstance(number, int) else None
    return {
        "id": doc.get("id", doc.get("question_id", position)),
        "response": _response(values),
        "type": doc.get("task_type", doc.get("type")),
        "truth": doc.get("truth"),
        "hallu": doc.get("hallu"),
        "truth_count": _whole(counters.get("safe_cover_num")),
        "hallu_count": _whole(counters.get("hallu_cover_num")),
    }


def _whole(value: object) -> int | None:
    """Return a counter; the tool starts some at 0.001 to avoid division by zero."""
    return round(value) if isinstance(value, (int, float)) else None


def _general(values: Mapping[str, object]) -> Mapping[str, object]:
    doc = mapping_at(values, "doc")
    return {
        **doc,
        "id": values.get("doc_id"),
        "response": _response(values),
        "label": only_label(values.get("target")),
        "question": doc.get("question", _prompt(values)),
        "image": _image(doc),
    }


def _sample(task: str, score: str, convert: object, *metrics: str, **more: object) -> ArchiveReader:
    return ArchiveReader(
        name=f"an lmms-eval sample file of task {task}",
        keys=("doc_id", score),
        matches=lambda values: isinstance(values.get(score), Mapping),
        metrics=metrics,
        convert=converting(convert),  # type: ignore[arg-type]  # functions of this module
        **more,  # type: ignore[arg-type]  # fields of the reader
    )


READERS = (
    *(_sample("POPE", name, _pope, "pope") for name in _POPE_SCORES),
    *(_sample("CHAIR", name, _chair, "chair") for name in _CHAIR_SCORES),
    *(
        _sample(
            "AMBER",
            name,
            _amber,
            "amber",
            arguments="-R annotations.json --associations relation.json "
            "--safe-words safe_words.txt",
        )
        for name in _AMBER_SCORES
    ),
    *(
        _sample("HallusionBench", name, _hallusion_bench, "hallusion-bench", fields={"id": ""})
        for name in _HALLUSION_BENCH_SCORES
    ),
    ArchiveReader(
        name="an lmms-eval sample file with yes/no labels",
        keys=("doc_id", "target"),
        matches=lambda values: (
            yes_or_no(only_label(values.get("target")))
            and ("filtered_resps" in values or "resps" in values)
            and "filter" not in values
        ),
        metrics=("pope",),
        any_metric=True,
        only_labels=True,
        convert=converting(_general),
    ),
    ArchiveReader(
        name="an lmms-eval sample file",
        keys=("doc_id", "target"),
        matches=lambda values: (
            ("filtered_resps" in values or "resps" in values) and "filter" not in values
        ),
        any_metric=True,
        convert=converting(_general),
        remedy="name a metric that scores its answers, and give its references with references=…",
    ),
    ArchiveReader(
        name="a summary of an lmms-eval or lm-evaluation-harness run, which has no responses",
        keys=("results", "versions"),
        remedy="give its sample files, which --log_samples writes",
        role="companion",
    ),
    ArchiveReader(
        name="a summary of an lmms-eval or lm-evaluation-harness run, which has no responses",
        keys=("results", "configs"),
        remedy="give its sample files, which --log_samples writes",
        role="companion",
    ),
)
