"""Layouts of EvalScope, of VLMEvalKit, and of batch APIs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.archive_samples import write_table
from support.messages import expected_message
from support.qa_samples import write_lines

from hallujudge.metrics import ChairItem
from hallujudge.sdk import Client, score_all
from hallujudge.sdk.archives import inspect_archives, read_items
from hallujudge.sdk.errors import ArchiveError

PICTURE = {"type": "image", "image": "data:image/png;base64,iVBORw==", "detail": "auto"}
FIGURE = {
    "category": "VD",
    "subcategory": "chart",
    "visual_input": "1",
    "set_id": "0",
    "figure_id": "0",
    "question_id": "0",
    "gt_answer": "1",
    "gt_answer_details": "It is.",
}


def messages(text: str) -> list[dict[str, Any]]:
    asked = {"type": "text", "text": "Is there a dog?\nPlease answer YES or NO."}
    answer = {"id": "a", "content": text, "role": "assistant", "model": "mock"}
    return [{"id": "q", "content": [asked, PICTURE], "role": "user"}, answer]


def prediction(index: int, text: str, known: Mapping[str, Any]) -> dict[str, Any]:
    choice = {"message": messages(text)[-1], "stop_reason": "stop"}
    return {
        "index": index,
        "model": "mock",
        "model_output": {"id": None, "model": "mock", "choices": [choice], "error": None},
        "messages": messages(text),
        "metadata": known,
    }


def review(index: int, text: str, known: Mapping[str, Any]) -> dict[str, Any]:
    score = {"value": {"acc": 1}, "status": "success", "prediction": text}
    label = "YES" if known.get("gt_answer") == "1" else known.get("answer")
    return {
        "index": index,
        "target": [label],
        "messages": messages(text),
        "sample_score": {"score": score, "sample_id": index, "sample_metadata": known},
    }


REPORT = {
    "schema_version": 2,
    "name": "mock@pope",
    "dataset_name": "pope",
    "model_name": "mock",
    "metrics": [{"name": "accuracy", "num": 6, "score": 0.5, "categories": []}],
    "num": 6,
}
WRITERS = {"predictions": prediction, "reviews": review}
SUBSETS = ("adversarial", "popular", "random")


def write(root: Path, kind: str, task: str, samples: list[tuple[str, dict[str, Any]]]) -> Path:
    path = root / "20261128_101112" / kind / "mock" / f"{task}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [WRITERS[kind](index, text, known) for index, (text, known) in enumerate(samples)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def pope(subset: str) -> list[tuple[str, dict[str, Any]]]:
    """Ids of questions begin again in each subset."""
    labels = {"YES": "Yes, there is.", "NO": "Yes."}
    return [
        (text, {"id": str(n), "answer": label, "category": subset, "question_id": str(n)})
        for n, (label, text) in enumerate(labels.items())
    ]


@pytest.mark.parametrize("kind", WRITERS)
def test_answers_of_pope_have_their_labels(tmp_path: Path, kind: str) -> None:
    for subset in SUBSETS:
        write(tmp_path, kind, f"pope_{subset}", pope(subset))
    with Client.embedded() as client:
        report = client.score("pope", responses=tmp_path)
    assert (report.coverage.scored, report.scores["accuracy"].value) == (6, 0.5)
    assert sorted(report.groups["category"]) == list(SUBSETS)


@pytest.mark.parametrize("kind", WRITERS)
def test_answers_of_hallusion_bench_have_their_places(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path, kind, "hallusion_bench_default", [("Yes, it is.", FIGURE)])
    with Client.embedded() as client:
        report = client.score("hallusion-bench", responses=path)
    scores = {name: report.scores[name].value for name in ("pair_accuracy", "figure_accuracy")}
    assert scores == {"pair_accuracy": 1.0, "figure_accuracy": 1.0}
    [found] = inspect_archives([path])
    assert (found.model, found.task) == ("mock", "hallusion_bench_default")


def test_a_failed_sample_is_unscored(tmp_path: Path) -> None:
    path = write(tmp_path, "predictions", "pope_random", pope("random"))
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[0]["model_output"] |= {"choices": [], "error": "timed out"}
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with Client.embedded() as client:
        report = client.score("pope", responses=path)
    assert dict(report.coverage.reasons) == {"RESPONSE_FAILED": 1}


def test_an_overview_scores_each_prediction_once(tmp_path: Path) -> None:
    """Reviews repeat predictions, in a folder of their own."""
    for kind in WRITERS:
        for subset in SUBSETS:
            write(tmp_path / "logs", kind, f"pope_{subset}", pope(subset))
        write(tmp_path / "logs", kind, "hallusion_bench_default", [("Yes.", FIGURE)])
    report = tmp_path / "logs" / "20261128_101112" / "reports" / "mock" / "pope.json"
    report.parent.mkdir(parents=True)
    report.write_text(json.dumps(REPORT))
    with Client.embedded() as client:
        overview = score_all(tmp_path / "logs", tmp_path / "out", client=client)
    assert overview.left_out == ()
    wanted = ["hallusion-bench", *(f"pope pope_{subset}" for subset in SUBSETS)]
    assert [run.name for run in overview.runs] == wanted
    assert {run.model for run in overview.runs} == {"mock"}


@pytest.mark.parametrize("suffix", ["xlsx", "tsv"])
def test_a_blank_cell_of_vlmevalkit_counts_as_an_empty_answer(tmp_path: Path, suffix: str) -> None:
    """VLMEvalKit's table takes it for an answer that says neither yes nor no."""
    rows = [
        {"index": n, "question": "Is there a dog?", "answer": "Yes", "prediction": text}
        for n, text in enumerate(["Yes", "Yes", None])
    ]
    path = tmp_path / f"model_POPE.{suffix}"
    write_table(path, rows)
    with Client.embedded() as client:
        report = client.score("pope", responses=path, variant="vlmevalkit")
        counted = client.score(
            "pope", responses=path, variant="vlmevalkit", options={"count_empty": "true"}
        )
    assert dict(report.coverage.reasons) == {"RESPONSE_EMPTY": 1}
    assert counted.scores["accuracy"].value == 2 / 3


REFERENCES = {"1": ["cat"], "2": ["person"], "3": ["truck"]}


def line(number: int, body: dict[str, Any] | None, error: Any = None) -> dict[str, Any]:
    response = {"status_code": 200, "request_id": f"req_{number}", "body": body}
    return {
        "id": f"batch_req_{number}",
        "custom_id": str(number),
        "response": None if body is None else response,
        "error": error,
    }


def chat(text: str | list[dict[str, str]] | None, **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": text, "refusal": None, **more}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    return {"id": "chatcmpl-1", "object": "chat.completion", "model": "m", "choices": [choice]}


COMPLETION = {"id": "cmpl-1", "object": "text_completion", "choices": [{"text": "A cat."}]}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "output": [
        {"id": "rs_1", "type": "reasoning", "summary": []},
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "A cat.", "annotations": []}],
        },
    ],
}


def written(folder: Path, *lines: object) -> Path:
    path = folder / "batch_output.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return path


@pytest.mark.parametrize(
    "body",
    [
        chat("A cat."),
        chat([{"type": "text", "text": "A cat."}]),
        chat(None, refusal="A cat."),
        COMPLETION,
        RESPONSE,
    ],
)
def test_replies_of_every_endpoint_are_responses(tmp_path: Path, body: dict[str, Any]) -> None:
    [item] = read_items("chair", written(tmp_path, line(1, body)), {"1": ["cat"]})
    assert isinstance(item, ChairItem)
    assert (item.id, item.response, item.reference_objects) == ("1", "A cat.", ("cat",))


def test_failed_lines_are_unscored_with_their_error(tmp_path: Path) -> None:
    expired = {"code": "batch_expired", "message": "This request could not be executed."}
    refused = {"error": {"code": "invalid_image", "message": "The image is not valid."}}
    path = written(tmp_path, line(1, None, expired), line(2, refused), line(3, chat("A truck.")))
    with Client.embedded() as client:
        report = client.score("chair", responses=path, references=REFERENCES)
    assert dict(report.coverage.reasons) == {"RESPONSE_FAILED": 2}
    assert (report.coverage.scored, report.scores["chair_i"].value) == (1, 0.0)


def test_lines_of_anthropic_are_read(tmp_path: Path) -> None:
    message = {"role": "assistant", "model": "m", "content": [{"type": "text", "text": "A cat."}]}
    path = written(
        tmp_path,
        {"custom_id": "1", "result": {"type": "succeeded", "message": message}},
        {"custom_id": "2", "result": {"type": "errored", "error": {"type": "api_error"}}},
        {"custom_id": "3", "result": {"type": "expired"}},
    )
    with Client.embedded() as client:
        report = client.score("chair", responses=path, references=REFERENCES)
    assert dict(report.coverage.reasons) == {"RESPONSE_FAILED": 2}
    assert report.coverage.scored == 1


def test_lines_of_gemini_are_read(tmp_path: Path) -> None:
    parts = [{"text": "A dog is not there.", "thought": True}, {"text": "A cat."}]
    candidate = {"content": {"parts": parts, "role": "model"}, "finishReason": "STOP"}
    path = written(
        tmp_path,
        {"key": "1", "response": {"candidates": [candidate], "modelVersion": "gemini-2.5-pro"}},
        {"key": "2", "error": {"code": 13, "message": "Internal error."}},
        {"key": "3", "response": {"promptFeedback": {"blockReason": "SAFETY"}}},
    )
    with Client.embedded() as client:
        report = client.score("chair", responses=path, references=REFERENCES)
    assert dict(report.coverage.reasons) == {"RESPONSE_FAILED": 2}
    assert (report.coverage.scored, report.scores["chair_i"].value) == (1, 0.0)


# The bodies of each family, as in the documentation of their inference parameters.
OF_BEDROCK: dict[str, dict[str, Any]] = {
    "Claude": {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "A cat."}],
        "stop_reason": "end_turn",
    },
    "Nova, Converse": {
        "output": {"message": {"role": "assistant", "content": [{"text": "A cat."}]}},
        "stopReason": "end_turn",
    },
    "Llama": {"generation": "A cat.", "generation_token_count": 3, "stop_reason": "stop"},
    "Titan": {"results": [{"outputText": "A cat.", "completionReason": "FINISH"}]},
    "Mistral": {"outputs": [{"text": "A cat.", "stop_reason": "stop"}]},
    "DeepSeek": {"choices": [{"text": "A cat.", "stop_reason": "stop"}]},
    "Pixtral": {"choices": [{"message": {"role": "assistant", "content": "A cat."}}]},
}


@pytest.mark.parametrize("family", OF_BEDROCK)
def test_lines_of_bedrock_are_read(tmp_path: Path, family: str) -> None:
    asked: dict[str, Any] = {"messages": [{"role": "user", "content": [{"text": "A dog?"}]}]}
    path = written(
        tmp_path,
        {"modelInput": asked, "modelOutput": OF_BEDROCK[family], "recordId": "1"},
        {"modelInput": asked, "error": {"errorCode": 400, "errorMessage": "bad"}, "recordId": "2"},
    )
    found = read_items("chair", path, REFERENCES)
    assert [(item.id, item.response) for item in found if isinstance(item, ChairItem)][:1] == [
        ("1", "A cat.")
    ]
    with Client.embedded() as client:
        report = client.score("chair", responses=path, references={"1": ["cat"], "2": ["cat"]})
    assert dict(report.coverage.reasons) == {"RESPONSE_FAILED": 1}


def test_a_thought_of_bedrocks_converse_api_is_no_answer(tmp_path: Path) -> None:
    parts = [
        {"reasoningContent": {"reasoningText": {"text": "A dog, or a truck?", "signature": "x"}}},
        {"text": "A cat."},
    ]
    output = {"output": {"message": {"role": "assistant", "content": parts}}}
    path = written(tmp_path, {"modelInput": {}, "modelOutput": output, "recordId": "1"})
    with Client.embedded() as client:
        report = client.score("chair", responses=path, references={"1": ["cat"]})
    assert report.scores["chair_i"].value == 0.0


def test_a_list_of_messages_is_naturalbenchs_list_of_answers(tmp_path: Path) -> None:
    pairs = [(question, image) for question in (0, 1) for image in (0, 1)]
    group = {"Index": 0, "Question_Type": "yes_no", "Question_0": "A?", "Question_1": "B?"}
    labels = {f"Image_{i}_Question_{q}": "Yes" if q == i else "No" for q, i in pairs}
    path = tmp_path / "answers.json"
    path.write_text(json.dumps([{"role": "assistant", "content": "Yes"} for _ in pairs]))
    with Client.embedded() as client:
        report = client.score("naturalbench", responses=path, references=[{**group, **labels}])
    assert report.scores["accuracy"].value == 0.5


def test_predictions_of_opencompass_have_their_labels(tmp_path: Path) -> None:
    asked = [{"role": "HUMAN", "prompt": "Is there a dog?"}]
    kept = {
        "0": {"gold": "yes", "prediction": "No.", "origin_prompt": asked},
        "1": {"gold": ["no"], "prediction": "No.", "origin_prompt": "Is there a cat?"},
    }
    path = tmp_path / "pope.json"
    path.write_text(json.dumps(kept))
    [found] = inspect_archives([path])
    assert found.layout == "OpenCompass's predictions with yes/no labels"
    with Client.embedded() as client:
        report = client.score("pope", responses=path)
    assert (report.coverage.scored, report.scores["accuracy"].value) == (2, 0.5)


@pytest.mark.parametrize("key", ["request_id", "question_id", "id"])
def test_outputs_of_vllm_are_read(tmp_path: Path, key: str) -> None:
    prompt = "<|im_start|>assistant\n<think>\n"
    texts = ["A dog? No.\n</think>\n\nA cat.", "Perhaps a dog", "A dog?</think>A truck."]
    path = written(
        tmp_path,
        *(
            {key: str(number), "prompt": prompt, "outputs": [{"text": text, "token_ids": []}]}
            for number, text in enumerate(texts, 1)
        ),
    )
    with Client.embedded() as client:
        report = client.score("chair", responses=path, references=REFERENCES)
    assert dict(report.coverage.reasons) == {"THOUGHT_UNFINISHED": 1}
    assert (report.coverage.scored, report.scores["chair_i"].value) == (2, 0.0)


@pytest.mark.parametrize(
    "response",
    [chat("A cat."), [{"type": "text", "text": "A cat."}], RESPONSE],
)
def test_a_reply_under_the_key_of_the_response_is_its_text(
    tmp_path: Path, response: object
) -> None:
    rows = [{"image_id": 1, "response": response}]
    [item] = read_items("chair", written(tmp_path, *rows), {"1": ["cat"]})
    assert isinstance(item, ChairItem)
    assert item.response == "A cat."


def test_replies_by_id_are_their_texts() -> None:
    replies = {
        "1": chat("A cat."),
        "2": {"role": "assistant", "content": "A man."},
        "3": "A truck.",
    }
    with Client.embedded() as client:
        report = client.score("chair", responses=replies, references=REFERENCES)
    assert (report.coverage.scored, report.scores["chair_i"].value) == (3, 0.0)


def test_an_inspection_names_the_tool_and_the_model(tmp_path: Path) -> None:
    [found] = inspect_archives([written(tmp_path, line(1, chat("A cat.")))])
    assert found.layout == "an output file of OpenAI's batch API"


def test_no_advice_names_a_key_of_ids(tmp_path: Path) -> None:
    reply = {"request_id": "r", "status": "ok", "model": "m", "body": chat("A cat.")}
    path = written(tmp_path, {"image_id": 1, "response": reply})
    with pytest.raises(ArchiveError) as caught:
        read_items("chair", path, {"1": ["cat"]})
    advice = expected_message("sdk.archives.record_values:only-the-text-is-advised")
    assert advice in str(caught.value)


def test_references_in_the_folder_decide_the_metric_of_an_overview(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    written(logs, line(1, chat("A cat.")), line(2, chat("A dog.")))
    (logs / "objects.json").write_text(json.dumps(REFERENCES))
    with Client.embedded() as client:
        overview = score_all(logs, tmp_path / "out", client=client)
    [run] = overview.runs
    assert (run.model, run.name, run.report.scores["chair_s"].value) == ("m", "chair", 0.5)
    assert overview.left_out == ()


@pytest.mark.parametrize("failed", ["batch_1_error.jsonl", "errors.jsonl"])
def test_failed_requests_are_unscored_items_of_the_batchs_model(
    tmp_path: Path, failed: str
) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    error = line(3, {"error": {"message": "no credit"}})
    write_lines(logs / "batch_1_output.jsonl", [line(1, chat("A cat.")), line(2, chat("A dog."))])
    write_lines(logs / failed, [error])
    (logs / "objects.json").write_text(json.dumps(REFERENCES))
    with Client.embedded() as client:
        overview = score_all(logs, tmp_path / "out", client=client)
    [run] = overview.runs
    coverage = run.report.coverage
    assert (run.model, coverage.items, coverage.unscored) == ("m", 3, 1)
    assert (overview.left_out, failed in str(overview.beside)) == ((), False)


def test_failed_requests_are_no_model_of_their_own(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    failed = [line(number, {"error": {"message": "no credit"}}) for number in (1, 2)]
    for name, model in (("a_output", "m"), ("b_output", "n")):
        replies = [line(number, {**chat("A cat."), "model": model}) for number in (2, 3)]
        write_lines(logs / f"{name}.jsonl", replies)
    write_lines(logs / "errors.jsonl", failed)
    write_lines(logs / "a_error.jsonl", failed)
    write_lines(logs / "b_error.jsonl", failed[1:])
    (logs / "objects.json").write_text(json.dumps(REFERENCES))
    with Client.embedded() as client:
        overview = score_all(logs, tmp_path / "out", client=client)
    assert [run.model for run in overview.runs] == ["m", "n"]
    why = {Path(entry.archive).name: entry.reason for entry in overview.left_out}
    assert "may belong to each of a_output.jsonl, b_output.jsonl" in why["errors.jsonl"]
    assert "a_output.jsonl has replies to 1 of its failed requests" in why["a_error.jsonl"]
    assert "failed requests that were answered in b_output.jsonl" in str(overview.beside)
