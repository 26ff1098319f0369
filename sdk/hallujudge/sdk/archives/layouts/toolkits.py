"""Files of evaluation toolkits, of batch APIs and of vLLM's outputs without a server."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from hallujudge.metrics.responses import sent_text
from hallujudge.metrics.responses.thoughts import opening_at_end

from .archive_reader import (
    NAME_A_METRIC,
    ArchiveReader,
    converting,
    first_text,
    mapping_at,
    only_label,
    readers_by_labels,
    yes_or_no,
)
from .harnesses import response_of_output, user_question

# EvalScope (since 1.0) writes a file for each subset of a benchmark. A prediction holds the model's
# output; a review, the conversation and the tool's own score. Both have what the benchmark knows of
# a sample: of POPE the label under ``answer``, of HallusionBench all its keys.
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


def _is_hallusion_bench_sample(values: Mapping[str, object]) -> bool:
    return {"set_id", "figure_id", "gt_answer"} <= _known(values).keys()


def _readers(kind: str, keys: tuple[str, ...], **more: Any) -> tuple[ArchiveReader, ...]:
    """Return the readers of predictions or of reviews."""
    name = f"EvalScope's {kind}"
    more |= {"named_by_task": True, "may_lack_references": True}
    labelled, other = readers_by_labels(name, keys, _label, converting(_sample), **more)
    hallusion_bench = replace(
        other,
        name=f"{name} of HallusionBench",
        matches=_is_hallusion_bench_sample,
        metrics=("hallusion-bench",),
        any_metric=False,
        fields={"id": ""},
        allow_missing=True,
        remedy="",
    )
    return hallusion_bench, labelled, other


EVALSCOPE_READERS = (
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


# VLMEvalKit ---------------------------------------------------------------------------------------


Common: TypeAlias = "Callable[[Mapping[str, object]], Mapping[str, object]]"
_AMBER_CATEGORIES = frozenset(
    [
        "discriminative-attribute-state",
        "discriminative-attribute-number",
        "discriminative-attribute-action",
        "discriminative-hallucination",
        "discriminative-relation",
        "relation",
    ]
)
# The parts of an index such as VD_chart_x_1_0_2 that follow the first three.
_PLACE = slice(3, 6)


def vlmevalkit_values(values: Mapping[str, object]) -> dict[str, object]:
    """Return the common keys of a prediction."""
    return {
        "id": values.get("index"),
        "response": _as_text(values.get("prediction")),
        "label": values.get("answer"),
        "image": values.get("image_path"),
    }


def _as_text(prediction: object) -> object:
    """Return a prediction that a spreadsheet took for a number, or for no value, as its text."""
    if prediction is None:
        return ""
    number = isinstance(prediction, (int, float)) and not math.isnan(prediction)
    return str(prediction) if number else prediction


def _amber(values: Mapping[str, object]) -> Mapping[str, object]:
    return {
        **vlmevalkit_values(values),
        "type": values.get("category"),
        "truth": values.get("answer"),
    }


def _hallusion_bench(values: Mapping[str, object]) -> Mapping[str, object]:
    """Return a question with its place in the benchmark, which its index and categories hold.

    The table does not distinguish edited figures from original ones; the benchmark's own file does,
    under the key that is looked up first.
    """
    parts = str(values.get("index")).split("_")[_PLACE]
    places = dict(zip(("set_id", "figure_id", "question_id"), parts, strict=False))
    return {
        **vlmevalkit_values(values),
        **places,
        "subcategory": values.get("l2-category"),
        "visual_input_in_table": "unknown",
        "gt_answer": values.get("answer"),
    }


_VLMEVALKIT_KEYS = ("index", "question", "prediction")
# Of HallusionBench, VLMEvalKit leaves out the questions without an image.
_SETTINGS: dict[str, dict[str, Any]] = {
    "hallusion-bench": {"variant": "image-only", "allow_missing": True},
    "pope": {"only_labels": True},
}


def vlmevalkit_predictions(
    name: str,
    metric: str,
    column: str,
    allowed: Callable[[str], object],
    convert: Common = vlmevalkit_values,
    keys: tuple[str, ...] = (*_VLMEVALKIT_KEYS, "answer"),
) -> tuple[ArchiveReader, ArchiveReader]:
    """Return the readers of a benchmark's predictions, with the tool's own judgements and without.

    Args:
        name: Which predictions they are, after ``VLMEvalKit's table of predictions``.
        metric: The metric that scores them.
        column: The column whose value tells the benchmark from others.
        allowed: Test of that value in the first record.
        convert: Returns the common keys of a record.
        keys: Keys that every record has, besides the column.
    """
    keys = tuple(dict.fromkeys([*keys, column]))
    table = ArchiveReader(
        name=f"VLMEvalKit's table of predictions {name}",
        keys=keys,
        matches=lambda values: bool(allowed(str(values.get(column)))),
        metrics=(metric,),
        convert=converting(convert),
        **_SETTINGS.get(metric, {}),
    )
    judged = replace(
        table,
        name=f"{table.name}, with its own judgements",
        keys=(*keys, "extracted", "score"),
        role="companion",
    )
    return judged, table


def _summary(keys: str) -> ArchiveReader:
    return ArchiveReader(
        name="VLMEvalKit's table of scores, which has no responses",
        keys=tuple(keys.split()),
        matches=lambda values: "prediction" not in values,
        role="companion",
        remedy="give the table of predictions, MODEL_DATASET.xlsx",
    )


VLMEVALKIT_READERS = (
    *vlmevalkit_predictions(
        "of HallusionBench",
        "hallusion-bench",
        "index",
        lambda index: len(index.split("_")) >= _PLACE.stop,
        _hallusion_bench,
        keys=("index", "prediction", "l2-category"),
    ),
    *vlmevalkit_predictions(
        "of AMBER", "amber", "category", _AMBER_CATEGORIES.__contains__, _amber
    ),
)
OTHER_VLMEVALKIT_READERS = (
    *vlmevalkit_predictions("with yes/no labels", "pope", "answer", yes_or_no),
    _summary("split Overall acc precision recall"),
    _summary("split aAcc fAcc qAcc"),
    ArchiveReader(
        name="VLMEvalKit's table of predictions of another benchmark",
        keys=_VLMEVALKIT_KEYS,
        any_metric=True,
        convert=converting(vlmevalkit_values),
        remedy=NAME_A_METRIC,
    ),
)


# OpenCompass --------------------------------------------------------------------------------------


def _opencompass(values: Mapping[str, object]) -> Mapping[str, object]:
    prompt = values.get("origin_prompt")
    # Conversations are lists of rounds, whose text is under "prompt".
    rounds = prompt if isinstance(prompt, list) else ()
    asked = [r.get("prompt") for r in rounds if isinstance(r, Mapping) and r.get("role") == "HUMAN"]
    return {
        "response": values.get("prediction"),
        "thought": values.get("reasoning_content"),
        "label": _gold(values),
        "question": asked[-1] if asked else prompt if isinstance(prompt, str) else None,
    }


def _gold(values: Mapping[str, object]) -> object:
    return only_label(values.get("gold"))


OPENCOMPASS_READERS = readers_by_labels(
    "OpenCompass's predictions",
    ("origin_prompt", "prediction"),
    _gold,
    converting(_opencompass),
)


# Batch APIs ---------------------------------------------------------------------------------------


def _openai(values: Mapping[str, object]) -> Mapping[str, object]:
    body = mapping_at(mapping_at(values, "response"), "body")
    # Providers put the error next to the response, or in its body.
    return _reply(values.get("custom_id"), body, values.get("error") or body.get("error"))


def _text_in(body: Mapping[str, object]) -> object:
    text = sent_text(body)
    return None if text is body else text


def _reply(identifier: object, body: Mapping[str, object], failed: object) -> Mapping[str, object]:
    """Return a reply with its text, or with why a request that failed has none."""
    text = _text_in(body)
    return {"id": identifier, "response": {"error": failed} if failed and text is None else text}


def _anthropic(values: Mapping[str, object]) -> Mapping[str, object]:
    result = mapping_at(values, "result")
    # A request that was not answered has no message, and its type says why.
    failed = result.get("error") or ("message" not in result and result.get("type"))
    return _reply(values.get("custom_id"), mapping_at(result, "message"), failed)


def _gemini(values: Mapping[str, object]) -> Mapping[str, object]:
    body = mapping_at(values, "response")
    failed = values.get("error") or mapping_at(body, "promptFeedback").get("blockReason")
    return _reply(values.get("key"), body, failed)


def _is_gemini(values: Mapping[str, object]) -> bool:
    body = mapping_at(values, "response")
    failed = "response" not in values and isinstance(values.get("error"), Mapping)
    return failed or "candidates" in body or "promptFeedback" in body


def _bedrock(values: Mapping[str, object]) -> Mapping[str, object]:
    return _reply(values.get("recordId"), _of_model(values), values.get("error"))


def _of_model(values: Mapping[str, object]) -> Mapping[str, object]:
    """Return the body of a model's output in the form of other servers.

    Bedrock gives each family's own body: Anthropic's and OpenAI's are known anyway.
    """
    body = mapping_at(values, "modelOutput")
    # Of Amazon Nova and the Converse API.
    if message := mapping_at(mapping_at(body, "output"), "message"):
        content = message.get("content")
        listed = content if isinstance(content, list) else ()
        parts = [each for each in listed if isinstance(each, Mapping)]
        return {"role": "assistant", "content": [_converse_part(part) for part in parts]}
    first = first_text(body.get("results") or body.get("outputs") or body.get("choices"))
    held = first if isinstance(first, Mapping) and "message" not in first else {}
    # Of Llama, Titan, and of Mistral and DeepSeek.
    texts = (body.get("generation"), held.get("outputText"), held.get("text"))
    text = next((each for each in texts if isinstance(each, str)), None)
    return body if text is None else {"role": "assistant", "content": text}


def _converse_part(part: Mapping[str, object]) -> Mapping[str, object]:
    thought = mapping_at(mapping_at(part, "reasoningContent"), "reasoningText").get("text")
    return part if thought is None else {"type": "reasoning", "text": thought}


def _is_bedrock(values: Mapping[str, object]) -> bool:
    # The file of requests has neither.
    return not values.keys().isdisjoint(("modelOutput", "error"))


def _vllm(values: Mapping[str, object]) -> Mapping[str, object]:
    known = values.keys() & {"id", "question_id"}
    text, prompt = _text_in(values), values.get("prompt")
    if isinstance(text, str) and isinstance(prompt, str):
        # The template of a model that thinks writes the first mark into the prompt.
        text = opening_at_end(prompt) + text
    # A prompt in its template is no question to compare with that of the reference.
    made_id = None if known else values.get("request_id")
    return {"id": made_id, "response": text, "prompt": ""}


def _is_vllm(values: Mapping[str, object]) -> bool:
    return _text_in({"outputs": values["outputs"]}) is not None


def _is_openai(values: Mapping[str, object]) -> bool:
    response = values.get("response")
    return (isinstance(response, Mapping) and "body" in response) or (
        response is None and isinstance(values.get("error"), Mapping)
    )


BATCH_READERS = (
    ArchiveReader(
        name="an output file of OpenAI's batch API",
        keys=("custom_id", "response"),
        matches=_is_openai,
        any_metric=True,
        convert=converting(_openai),
        model_key="response.body.model",
        remedy=NAME_A_METRIC,
    ),
    ArchiveReader(
        name="an output file of Anthropic's batch API",
        keys=("custom_id", "result"),
        matches=lambda values: "type" in mapping_at(values, "result"),
        any_metric=True,
        convert=converting(_anthropic),
        model_key="result.message.model",
        remedy=NAME_A_METRIC,
    ),
    ArchiveReader(
        name="an output file of Gemini's batch API",
        keys=("key",),
        matches=_is_gemini,
        any_metric=True,
        convert=converting(_gemini),
        model_key="response.modelVersion",
        remedy=NAME_A_METRIC,
    ),
    ArchiveReader(
        name="an output file of Amazon Bedrock's batch inference",
        keys=("recordId", "modelInput"),
        matches=_is_bedrock,
        any_metric=True,
        convert=converting(_bedrock),
        model_key="modelOutput.model",
        remedy=NAME_A_METRIC,
    ),
    ArchiveReader(
        name="outputs of vLLM without a server",
        keys=("outputs",),
        matches=_is_vllm,
        any_metric=True,
        convert=converting(_vllm),
        remedy=NAME_A_METRIC,
    ),
)
