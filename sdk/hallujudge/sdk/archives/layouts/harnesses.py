"""Sample files of evaluation harnesses: lmms-eval, lm-evaluation-harness and Inspect AI.

lmms-eval (``--log_samples``) changed its layout several times: one object with ``logs`` (until
0.2.3), a line for each sample with ``doc`` (until 0.3.5), without it (since 0.4), and with flat
responses (since 0.7). Readers therefore take each value from wherever a release put it. Since 0.4
the label is only in the values of scores. A question id appears once in each category, so
``doc_id`` is the id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain

from hallujudge.metrics.responses import PLAIN_READER, content_text, thought_in
from hallujudge.metrics.responses.thoughts import with_thought

from ..records import Record
from .archive_reader import (
    ArchiveReader,
    converting,
    first_text,
    mapping_at,
    only_label,
    readers_by_labels,
)

# lmms-eval repeats a sample's own data under the name of each score.
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


def _lmms_response(values: Mapping[str, object]) -> object:
    """Return the response; the raw ones are left out where they equal the filtered ones.

    Since 0.5 the tool takes thoughts off the filtered responses, and the raw ones still have them.
    """
    filtered, raw = (first_text(values.get(key)) for key in ("filtered_resps", "resps"))
    if isinstance(filtered, str) and isinstance(raw, str) and filtered != raw:
        said = PLAIN_READER.read(raw)
        if said.thought and said.thought not in filtered:
            return with_thought(said.thought, filtered, "resps")
    return raw if filtered is None else filtered


def _lmms_prompt(values: Mapping[str, object]) -> object:
    prompt = first_text(values.get("input", values.get("arguments")))
    return prompt if isinstance(prompt, str) else None


def _lmms_image(doc: Mapping[str, object]) -> object:
    named = (doc.get(key) for key in ("image_source", "image_id", "image", "image_path"))
    return next((name for name in named if isinstance(name, (str, int))), None)


def _pope(values: Mapping[str, object]) -> Mapping[str, object]:
    score, doc = _score(values, _POPE_SCORES), mapping_at(values, "doc")
    response = _lmms_response(values)
    label = score.get("ground_truth", doc.get("answer"))
    return {
        "id": values.get("doc_id", score.get("question_id")),
        "question_id": score.get("question_id", doc.get("question_id")),
        "response": score.get("prediction") if response is None else response,
        "label": only_label(values.get("target")) if label is None else label,
        "question": doc.get("question", _lmms_prompt(values)),
        "image": _lmms_image(doc),
        "category": doc.get("category"),
    }


def _chair(values: Mapping[str, object]) -> Mapping[str, object]:
    score = _score(values, _CHAIR_SCORES)
    return {
        "id": score.get("image_id"),
        "image_id": score.get("image_id"),
        "response": _lmms_response(values),
        "reference_objects": score.get("answer"),
    }


def _hallusion_bench(values: Mapping[str, object]) -> Mapping[str, object]:
    score = _score(values, _HALLUSION_BENCH_SCORES)
    response = _lmms_response(values)
    given = score.get("model_prediction") if response is None else response
    return {**mapping_at(values, "doc"), **score, "response": given}


def _amber(values: Mapping[str, object]) -> Mapping[str, object]:
    """Return an AMBER sample; without ``doc`` its id is its position, as in the benchmark.

    The counters hold the image's number of objects, so that the metric's reader can check the id.
    """
    doc, counters = mapping_at(values, "doc"), _score(values, _AMBER_SCORES)
    number = values.get("doc_id")
    position = number + 1 if isinstance(number, int) else None
    return {
        "id": doc.get("id", doc.get("question_id", position)),
        "response": _lmms_response(values),
        "type": doc.get("task_type", doc.get("type")),
        "truth": doc.get("truth"),
        "hallu": doc.get("hallu"),
        "truth_count": _whole(counters.get("safe_cover_num")),
        "hallu_count": _whole(counters.get("hallu_cover_num")),
    }


def _whole(value: object) -> int | None:
    """Return a counter; the tool starts some at 0.001 to avoid division by zero."""
    return round(value) if isinstance(value, (int, float)) else None


def lmms_values(values: Mapping[str, object]) -> Mapping[str, object]:
    """Return the common keys of a sample, with what its ``doc`` has."""
    doc = mapping_at(values, "doc")
    return {
        **doc,
        "id": values.get("doc_id"),
        "response": _lmms_response(values),
        "label": only_label(values.get("target")),
        "question": doc.get("question", _lmms_prompt(values)),
        "image": _lmms_image(doc),
    }


def lmms_sample(
    task: str, score: str, metric: str, convert: object = lmms_values, **more: object
) -> ArchiveReader:
    """Return the reader of a task's samples.

    Args:
        task: Name of the task, for messages.
        score: Name of a score under which the samples have their own data.
        metric: The metric that scores them.
        convert: Returns the common keys of a sample.
        more: Further fields of the reader.
    """
    return ArchiveReader(
        name=f"an lmms-eval sample file of task {task}",
        keys=("doc_id", score),
        matches=lambda values: isinstance(values.get(score), Mapping),
        metrics=(metric,),
        convert=converting(convert),  # type: ignore[arg-type]  # functions of this module
        **more,  # type: ignore[arg-type]  # fields of the reader
    )


LMMS_EVAL_READERS = (
    *(lmms_sample("POPE", name, "pope", _pope) for name in _POPE_SCORES),
    *(lmms_sample("CHAIR", name, "chair", _chair) for name in _CHAIR_SCORES),
    *(
        lmms_sample(
            "AMBER",
            name,
            "amber",
            _amber,
            arguments="-R annotations.json --associations relation.json "
            "--safe-words safe_words.txt",
        )
        for name in _AMBER_SCORES
    ),
    *(
        lmms_sample("HallusionBench", name, "hallusion-bench", _hallusion_bench, fields={"id": ""})
        for name in _HALLUSION_BENCH_SCORES
    ),
)
OTHER_LMMS_EVAL_READERS = readers_by_labels(
    "an lmms-eval sample file",
    ("doc_id", "target"),
    lambda values: only_label(values.get("target")),
    converting(lmms_values),
    # Samples with a filter are those of lm-evaluation-harness.
    matches=lambda values: (
        ("filtered_resps" in values or "resps" in values) and "filter" not in values
    ),
)


def _holds_totals(values: Mapping[str, object]) -> bool:
    """Return whether an object is the results of tasks: numbers, with the filter after a comma."""
    tasks = mapping_at(values, "results").values()
    return bool(tasks) and all(
        isinstance(task, Mapping) and any("," in str(name) for name in task) for task in tasks
    )


RESULTS_READERS = (
    ArchiveReader(
        name="the results file of an lmms-eval or lm-evaluation-harness run, which holds totals "
        "only, no responses",
        keys=("results",),
        matches=lambda values: "versions" in values or "configs" in values or _holds_totals(values),
        shape="totals of tasks",
        remedy="give its sample files, which --log_samples writes; `hallujudge audit` compares the "
        "totals with a run",
        role="companion",
    ),
)
"""The layout of a harness's totals."""


# What a filter by a regular expression writes where the expression does not match.
_NO_MATCH = "[invalid]"


def _lm_eval_records(records: Iterator[Record]) -> Iterator[Record]:
    """Yield the samples of the first filter: each filter repeats all samples."""
    if (first := next(records, None)) is not None:
        wanted = first.values.get("filter")
        same = (record for record in records if record.values.get("filter") == wanted)
        yield from converting(_lm_eval_common)(chain([first], same))


def _lm_eval_common(values: Mapping[str, object]) -> Mapping[str, object]:
    doc = mapping_at(values, "doc")
    first = mapping_at(mapping_at(values, "arguments"), "gen_args_0")
    return {
        **{key: value for key, value in doc.items() if key not in ("answer", "label")},
        "id": values.get("doc_id"),
        "response": _lm_eval_response(values),
        "label": only_label(values.get("target")),
        "question": doc.get("question", first.get("arg_0")),
    }


def _lm_eval_response(values: Mapping[str, object]) -> object:
    """Return the filter's response, or the model's own one where the filter found nothing."""
    found = first_text(values.get("filtered_resps"))
    return first_text(values.get("resps")) if found in (None, _NO_MATCH) else found


LM_EVAL_READERS = readers_by_labels(
    "an lm-evaluation-harness sample file",
    ("doc_id", "target", "filtered_resps", "filter"),
    lambda values: only_label(values.get("target")),
    _lm_eval_records,
)


# Inspect AI keeps long texts and images once, and refers to them by this prefix.
_ATTACHMENT = "attachment://"


def response_of_output(output: Mapping[str, object]) -> object:
    """Return the completion, after the thought that is a part of the message's content.

    Inspect AI and EvalScope keep outputs alike.
    """
    choice = first_text(output.get("choices"))
    message = mapping_at(choice, "message") if isinstance(choice, Mapping) else {}
    completion = output.get("completion") or content_text(message.get("content"))
    found = thought_in(message)
    if found is None or not isinstance(completion, str | None):
        return completion
    return with_thought(found[1], completion, found[0])


def user_question(given: object) -> str | None:
    """Return the text of the last message of the user."""
    if not isinstance(given, list):
        return content_text(given)
    asked = [m for m in given if isinstance(m, Mapping) and m.get("role", "user") == "user"]
    return content_text(asked[-1].get("content")) if asked else None


def _first_image(given: object) -> str | None:
    """Return the name of the first image; images in the log itself have none."""
    for message in given if isinstance(given, list) else ():
        content = message.get("content") if isinstance(message, Mapping) else None
        for part in content if isinstance(content, list) else ():
            name = part.get("image") if isinstance(part, Mapping) else None
            if isinstance(name, str) and not name.startswith("data:"):
                return name
    return None


def _attached(text: str | None, values: Mapping[str, object]) -> str | None:
    """Return a text; the log keeps long ones apart and refers to them."""
    if text is None or not text.startswith(_ATTACHMENT):
        return text
    found = mapping_at(values, "attachments").get(text.removeprefix(_ATTACHMENT))
    return found if isinstance(found, str) and not found.startswith("data:") else None


def _inspect_sample(values: Mapping[str, object]) -> Mapping[str, object]:
    metadata, given = mapping_at(values, "metadata"), values.get("input")
    identifier, epoch = values.get("id"), values.get("epoch")
    failed = values.get("error")
    columns = [values[key] for key in _INSPECT_COLUMNS if key in values]
    response = (
        response_of_output(mapping_at(values, "output")) if "output" in values else columns[0]
    )
    return {
        "image": _attached(_first_image(given), values),
        **metadata,
        # Each epoch asks all samples again, under the same ids.
        "id": identifier if epoch in (None, 1) else f"{identifier}, epoch {epoch}",
        # A sample whose run failed has no answer, even if it has an output.
        "response": None if failed else response,
        "label": first_text(values.get("target")),
        "question": _attached(user_question(given), values),
    }


_INSPECT_KEYS = ("id", "epoch", "input", "target")
# Of a table that a user made of a log, with the responses in a column.
_INSPECT_COLUMNS = ("response", "completion", "answer")


_INSPECT_LABELLED, _INSPECT_LOG = readers_by_labels(
    "an Inspect AI log",
    _INSPECT_KEYS,
    lambda values: first_text(values.get("target")),
    converting(_inspect_sample),
    may_lack_references=True,
    model_key="output.model",
)

INSPECT_AI_READERS = (
    ArchiveReader(
        name="a table of samples of Inspect AI, such as samples_df makes, without any response",
        keys=_INSPECT_KEYS,
        matches=lambda values: not {"output", *_INSPECT_COLUMNS} & values.keys(),
        role="companion",
        remedy="give the log itself, or add a column of responses: samples_df(LOG, columns="
        "[*SampleSummary, SampleColumn('response', path='output.completion', full=True)])",
    ),
    _INSPECT_LABELLED,
    replace(
        _INSPECT_LOG,
        name="an Inspect AI log with objects of images",
        matches=lambda values: bool(
            {"reference_objects", "objects", "gt_objects"} & mapping_at(values, "metadata").keys()
        ),
        metrics=("chair",),
        remedy="",
    ),
    _INSPECT_LOG,
    ArchiveReader(
        name="an Inspect AI log without samples",
        keys=("version", "status", "eval"),
        matches=lambda values: not values.get("samples"),
        role="companion",
        remedy="give a log of a run that finished a sample",
    ),
)
