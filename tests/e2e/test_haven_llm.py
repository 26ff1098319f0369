"""HAVEN's answers, which a language model extracts and grades over real HTTP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import scripted_llm as llm
from support.choice_judge import blocks_of, scripted
from support.qa_running import report_of
from support.qa_samples import write_lines
from support.running import ServerProcess, here, read_rows

# Response -> what is extracted from it.
REASONED = {
    "He holds a needle, yet he draws. So it is not sewing.": "no",
    "It moves left at first, and then right, the second option.": "B. It moves right",
    "It can't be told from the frames.": "no answer",
}
SHORT = "A cat sits on a mat."


@pytest.fixture(autouse=True)
def few_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALLUJUDGE_LLM_ATTEMPTS", "1")


def record(number: int, form: str, reference: str, response: str) -> dict[str, Any]:
    return {
        **{"Index": number, "Question": f"What of video {number}?", "Answer": reference},
        **{"Causes": "c", "Aspects": "Event", "Form": form, "Video Path": "v", "Group_id": "g"},
        **{"Model Answer": response, "Extract Answer": "F", "Correctness": "F"},
    }


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    references = ("No", "A. It moves left", "no answer")
    forms = ("Binary-choice", "Multiple-choice", "Multiple-choice")
    rows = zip(forms, references, REASONED, strict=True)
    records = [record(number, *row) for number, row in enumerate(rows)]
    records.append(record(3, "Short-answer", "A cat", SHORT))
    return write_lines(tmp_path / "answers.jsonl", records)


def grade(blocks: dict[str, str]) -> str:
    same = blocks["REFERENCE"].lower() == blocks["RESPONSE"].lower()
    return "1" if same or blocks["RESPONSE"] == SHORT else "0"


def judge(_number: int, body: llm.Body) -> llm.Reply:
    blocks = blocks_of(body)
    # Only who grades sees the reference.
    return llm.completion(grade(blocks) if "REFERENCE" in blocks else REASONED[blocks["RESPONSE"]])


def score(
    file: Path, out: Path, *more: str | Path, judgements: str = "llm", variant: str = "two-calls"
) -> Any:
    given = ("--responses", file, "--judgements", judgements, "--variant", variant)
    return here("score", "haven", *given, *more, "--out", out)


def test_what_is_extracted_is_graded_here_and_at_a_server(answers: Path, tmp_path: Path) -> None:
    with scripted(judge) as server:
        cache = ("--verdict-cache", tmp_path / "verdicts.sqlite")
        flags = ("--llm-url", server.url, "--llm-model", "tiny")
        run = score(answers, tmp_path / "here", *flags, *cache)
        assert run.returncode == 0, run.stderr
        asked = list(map(blocks_of, server.requests))
        # Replies that are kept cost nothing, and make the same files.
        assert score(answers, tmp_path / "again", *flags, *cache).returncode == 0
        assert server.chats == len(asked)
        remote = ServerProcess(*flags)
        try:
            run = score(answers, tmp_path / "there", "--server", remote.address)
            assert run.returncode == 0, run.stderr
        finally:
            remote.stop()
        assert server.chats == 2 * len(asked)
    graded = [blocks["RESPONSE"] for blocks in asked if "REFERENCE" in blocks]
    extracted = [blocks["RESPONSE"] for blocks in asked if "REFERENCE" not in blocks]
    assert sorted(extracted) == sorted(REASONED)
    # Short answers are graded as they are, and no grader sees the reasoning.
    assert sorted(graded) == sorted([*REASONED.values(), SHORT])
    items = (tmp_path / "here/items.jsonl").read_bytes()
    assert items == (tmp_path / "again/items.jsonl").read_bytes()
    report = report_of(tmp_path / "here")
    assert report["scores"]["accuracy"]["value"] == 0.75
    there = report_of(tmp_path / "there")
    assert (report["scores"], report["signature"]) == (there["scores"], there["signature"])
    signature = report["signature"]
    assert "haven|var:two-calls|judgements:llm|" in signature
    assert "haven-1@" in signature
    assert "haven-extract-1@" in signature
    first, *_, last = read_rows(tmp_path / "here/items.jsonl")
    assert first["evidence"]["answers"][0]["how"] == "grade of 'no'"
    assert [row["evidence"]["judging"][0]["calls"] for row in (first, last)] == [2, 1]
    assert report["judging"][0]["calls"] == len(asked)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (llm.completion(" "), "REPLY_OUT_OF_CHOICE"),
        (llm.completion("no, because", finish="length"), "REPLY_TRUNCATED"),
        (llm.completion(None, refusal="I can't."), "JUDGE_REFUSED"),
    ],
)
def test_an_answer_that_is_not_extracted_is_not_graded(
    answers: Path, tmp_path: Path, reply: llm.Reply, reason: str
) -> None:
    def refusing(number: int, body: llm.Body) -> llm.Reply:
        blocks = blocks_of(body)
        return reply if blocks["RESPONSE"] == next(iter(REASONED)) else judge(number, body)

    with scripted(refusing) as server:
        flags = ("--llm-url", server.url, "--llm-model", "tiny")
        run = score(answers, tmp_path / "out", *flags)
        assert run.returncode == 3, run.stderr
        graded = [b["RESPONSE"] for b in map(blocks_of, server.requests) if "REFERENCE" in b]
    assert "no" not in graded
    report = report_of(tmp_path / "out")
    assert report["coverage"]["reasons"] == {reason: 1}
    assert report["scores"]["accuracy"]["value"] == pytest.approx(2 / 3)
    first, *_ = read_rows(tmp_path / "out/items.jsonl")
    assert "no answer is extracted: " in first["detail"]


def test_the_fallback_grades_what_it_extracts_itself(
    answers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def empty(_number: int, body: llm.Body) -> llm.Reply:
        blocks = blocks_of(body)
        return llm.completion(grade(blocks) if "REFERENCE" in blocks else "")

    with scripted(empty) as server, scripted(judge, model="big") as second:
        monkeypatch.setenv("HALLUJUDGE_FALLBACK_URL", second.url)
        flags = ("--llm-url", server.url, "--llm-model", "tiny", "--fallback-model", "big")
        run = score(answers, tmp_path / "out", *flags, judgements="router")
        assert run.returncode == 0, run.stderr
        assert second.chats == 2 * len(REASONED)
    first, *_, last = read_rows(tmp_path / "out/items.jsonl")
    found = [(part["judge"], part["answered"]) for part in first["evidence"]["judging"]]
    assert found == [("llm", 0), ("fallback", 1)]
    assert [part["judge"] for part in last["evidence"]["judging"]] == ["llm"]


def test_an_estimate_counts_both_calls(answers: Path, tmp_path: Path) -> None:
    with scripted(judge) as server:
        flags = ("--llm-url", server.url, "--llm-model", "tiny", "--estimate")
        run = score(answers, tmp_path / "out", *flags)
        assert server.chats == 0
    assert f"{2 * len(REASONED) + 1} calls" in run.stdout


def test_a_judge_that_writes_no_text_is_refused(answers: Path, tmp_path: Path) -> None:
    with scripted(judge) as server:
        flags = ("--llm-url", server.url, "--llm-model", "tiny", "--llm-api", "scoring")
        run = score(answers, tmp_path / "out", *flags)
        assert (run.returncode, server.chats) == (2, 0)
    assert "--llm-api is 'scoring', which writes no text to judge; set it to chat" in run.stderr


def test_other_variants_grade_responses_in_one_call(answers: Path, tmp_path: Path) -> None:
    with scripted(judge) as server:
        flags = ("--llm-url", server.url, "--llm-model", "tiny")
        run = score(answers, tmp_path / "out", *flags, variant="paper")
        assert run.returncode == 0, run.stderr
        asked = [blocks_of(body)["RESPONSE"] for body in server.requests]
    assert sorted(asked) == sorted([*REASONED, SHORT])
    report = report_of(tmp_path / "out")
    assert json.dumps(report["scores"]["accuracy"]["value"]) == "0.25"
    assert "haven-extract" not in report["signature"]
