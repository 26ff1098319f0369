"""Judges that are run offline: requests out, replies in, and no server is called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import scripted_llm as llm
from support.messages import expected_message
from support.qa_samples import write_lines
from support.running import assert_refused, here
from support.tri_he_samples import FALSE, SCENE, TRUE, answer


@pytest.fixture
def command(tmp_path: Path) -> tuple[str | Path, ...]:
    answers = [answer("1", TRUE, FALSE, question=f"{n}?") for n in range(3)]
    answers.append(answer("1", ["cat", "on", "mat"]))
    graphs = write_lines(tmp_path / "graphs.jsonl", [{"image_id": "1", "triplets": SCENE}])
    return (
        *("score", "tri-he", "--claims", write_lines(tmp_path / "answers.jsonl", answers)),
        *("-R", graphs, "--judge", "llm", "--llm-model", "m", "-o", tmp_path / "out"),
    )


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def replied(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what a batch run writes for requests."""
    return [
        {
            "id": f"vllm-{number}",
            "custom_id": request["custom_id"],
            "response": {
                "status_code": 200,
                "request_id": f"r{number}",
                "body": json.loads(llm.by_scene_graph(number, request["body"]).body),
            },
            "error": None,
        }
        for number, request in enumerate(requests)
    ]


def test_requests_are_run_offline(tmp_path: Path, command: tuple[str | Path, ...]) -> None:
    requests, replies = tmp_path / "requests.jsonl", tmp_path / "replies.jsonl"
    exported = here("batch", "export", requests, *command)
    assert exported.returncode == 0, exported.stderr
    assert exported.stdout == f"3 requests written to {requests}\n"
    assert not (tmp_path / "out").exists()
    sent = rows(requests)
    assert len({request["custom_id"] for request in sent}) == 3
    for request in sent:
        assert (request["method"], request["url"]) == ("POST", "/v1/chat/completions")
        assert request["body"]["model"] == "m"
        assert request["body"]["temperature"] == 0
    write_lines(replies, replied(sent))
    imported = here("batch", "import", replies, *command)
    assert imported.returncode == 0, imported.stderr
    assert "hallu_q" in imported.stdout
    # The verdicts are in the run's cache: nothing is left to be asked.
    again = here("batch", "export", requests, *command)
    assert again.stdout == f"0 requests written to {requests}\n"
    items = tmp_path / "out" / "items.jsonl"
    before = items.read_bytes()
    said = expected_message("sdk.cli.output:a-part-of-a-run")
    assert_refused(here("batch", "export", items, *command), said)
    assert items.read_bytes() == before


def test_the_scores_are_those_of_a_server(tmp_path: Path, command: tuple[str | Path, ...]) -> None:
    requests, replies = tmp_path / "requests.jsonl", tmp_path / "replies.jsonl"
    here("batch", "export", requests, *command)
    write_lines(replies, replied(rows(requests)))
    assert here("batch", "import", replies, *command).returncode == 0
    server = llm.ScriptedLlm(llm.by_scene_graph)
    stop = server.in_thread()
    try:
        called = (*command[:-1], tmp_path / "called", "--llm-url", server.url)
        assert here(*called).returncode == 0
    finally:
        stop()
    scores = [
        json.loads((tmp_path / name / "report.json").read_text())["scores"]
        for name in ("out", "called")
    ]
    assert scores[0] == scores[1]


def test_requests_without_a_reply_are_unscored(
    tmp_path: Path, command: tuple[str | Path, ...]
) -> None:
    requests, replies = tmp_path / "requests.jsonl", tmp_path / "replies.jsonl"
    here("batch", "export", requests, *command)
    sent = rows(requests)
    [cat] = [request for request in sent if "cat" in llm.prompt_of(request["body"])]
    some = [reply for reply in replied(sent) if reply["custom_id"] != cat["custom_id"]]
    write_lines(replies, some)
    partly = here("batch", "import", replies, *command)
    assert partly.returncode == 3
    assert "JUDGE_NO_REPLY" in partly.stderr
    # The rest may come later.
    left = here("batch", "export", requests, *command)
    assert left.stdout.startswith("1 requests written")
    failed = {"custom_id": cat["custom_id"], "response": None, "error": {"message": "too hot"}}
    write_lines(replies, [failed])
    assert (
        expected_message("judge_service.llm.chat_servers:its-reply-is-an-error-http-too")
        in here("batch", "import", replies, *command).stderr
    )
    page = {"custom_id": cat["custom_id"], "response": {"status_code": 200, "body": "<html>"}}
    write_lines(replies, [page])
    odd = here("batch", "import", replies, *command)
    assert (
        expected_message("judge_service.llm.chat_servers:its-reply-is-no-chat-completion")
        in odd.stderr
    )
    assert "JUDGE_NO_REPLY" in odd.stderr, "a file is not an outage to be waited for"
    write_lines(replies, replied(rows(requests)))
    assert here("batch", "import", replies, *command).returncode == 0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("nonsense\n", "replies.jsonl:1: not a line of JSON"),
        ('{"id": 1}\n', "replies.jsonl:1: a reply has custom_id and response"),
        ('{"custom_id": "a", "method": "POST"}\n', "replies.jsonl:1: a request, not a reply"),
    ],
)
def test_other_files_are_refused(
    tmp_path: Path, command: tuple[str | Path, ...], content: str, said: str
) -> None:
    replies = tmp_path / "replies.jsonl"
    replies.write_text(content)
    refused = here("batch", "import", replies, *command)
    assert refused.returncode == 2
    assert said in refused.stderr


def test_what_cannot_be_exported_is_told(tmp_path: Path) -> None:
    captions = write_lines(tmp_path / "captions.jsonl", [{"image_id": 1, "caption": "A dog."}])
    (tmp_path / "objects.json").write_text('{"1": ["dog"]}')
    chair = ("chair", "-r", captions, "-R", tmp_path / "objects.json", "-o", tmp_path / "out")
    refused = here("batch", "export", tmp_path / "requests.jsonl", "score", *chair)
    assert refused.returncode == 2
    assert (
        expected_message("sdk.cli.score_execution:sends-no-request-to-language-model")
        in refused.stderr
    )
    (tmp_path / "replies.jsonl").write_text("")
    refused = here("batch", "import", tmp_path / "replies.jsonl", "score", *chair)
    assert (refused.returncode, (tmp_path / "out").exists()) == (2, False)
    assert (
        expected_message("sdk.cli.score_execution:sends-no-request-to-language-model")
        in refused.stderr
    )
    refused = here("batch", "export", tmp_path / "requests.jsonl", *chair)
    assert expected_message("sdk.cli.job_commands:chair-is-not-score-command") in refused.stderr
