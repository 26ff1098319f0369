"""Outputs of batch APIs.

The lines have the shape of OpenAI's documented output files; their bodies are what openai 3.57.0
makes of a ``ChatCompletion``, ``Completion`` or ``Response``. vLLM's ``run_batch`` and Azure write
the same lines.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.messages import expected_message
from support.qa_samples import write_lines

from hallujudge.metrics import ChairItem
from hallujudge.sdk import Client, score_all
from hallujudge.sdk.archives import inspect_archives, read_items
from hallujudge.sdk.errors import ArchiveError

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


def test_an_inspection_names_the_tool_and_the_model(tmp_path: Path) -> None:
    [found] = inspect_archives([written(tmp_path, line(1, chat("A cat.")))])
    assert found.layout == "an output file of OpenAI's batch API"


def test_no_advice_names_a_key_of_ids(tmp_path: Path) -> None:
    reply = {"request_id": "r", "status": "ok", "model": "m", "body": chat("A cat.")}
    path = written(tmp_path, {"image_id": 1, "response": reply})
    with pytest.raises(ArchiveError) as caught:
        read_items("chair", path, {"1": ["cat"]})
    assert expected_message("sdk.archives.records:only-the-text-is-advised") in str(caught.value)


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
