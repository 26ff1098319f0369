"""ARGUS with a language model that judges captions line by line, over real HTTP."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import scripted_llm as llm
from support.choice_judge import blocks_of, judged_here_and_there, scripted, step
from support.qa_running import report_of
from support.running import here, read_rows

SOURCE = "A man opens a wooden box. Then he takes out a small key. He locks the door."
LINES = {
    "Then he takes out a small key.": "action 2",
    "A man opens a wooden box.": "action 1",
    "The light is soft and warm.": "underdetermined",
    "The man is a dancer in a hall.": "contradiction",
    "It is about a man and a door.": "summary",
}
TARGET = " ".join(LINES)


@pytest.fixture(autouse=True)
def few_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALLUJUDGE_LLM_ATTEMPTS", "1")


def records(*targets: str) -> str:
    return json.dumps(
        [
            {"clip": n, "mode": "hallucination", "human_caption": SOURCE, "model_caption": text}
            for n, text in enumerate(targets)
        ]
    )


def test_lines_are_judged_once_and_a_server_writes_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "captions.json").write_text(records(TARGET, "He locks the door. REFUSE this line."))
    given = ("--responses", tmp_path / "captions.json", "--verdicts", "llm")
    judge = step({**LINES, "He locks the door.": "action 3"}, "LINE")
    asked, more = judged_here_and_there("argus", given, judge, tmp_path)
    assert more == 1, "only the refusal is asked again"
    lines = [blocks_of(body)["LINE"] for body in asked]
    # Calls run at the same time, in any order.
    assert sorted(lines) == sorted([*LINES, "He locks the door. REFUSE this line."])
    sources = {blocks_of(body)["SOURCE"] for body in asked}
    assert sources == {
        "[1] A man opens a wooden box. [2] Then he takes out a small key. [3] He locks the door."
    }
    report = report_of(tmp_path / "here")
    assert report["coverage"]["reasons"] == {"JUDGE_REFUSED": 1}
    first, second = read_rows(tmp_path / "here" / "items.jsonl")
    # Two lines are not entailed, and one pair of actions is in the wrong order.
    assert first["evidence"]["cost"] == pytest.approx(2.1)
    assert [part["answered"] for part in first["evidence"]["judging"]] == [len(LINES)]
    assert "REFUSE" not in json.dumps(first)
    assert second["evidence"]["judging"][0]["declined"]["JUDGE_REFUSED"]["claims"] == 1
    assert "verdicts:llm|judge:tiny (vllm 0.32.0),argus-1@" in report["signature"]


def test_a_fallback_judges_the_lines_that_the_first_judge_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "captions.json").write_text(records("He locks the door slowly. REFUSE this line."))
    given = ("--responses", tmp_path / "captions.json", "--verdicts", "router")
    judge = step({"He locks the door slowly.": "action 3"}, "LINE")
    with scripted(judge) as server, scripted(llm.saying("contradiction"), model="big") as second:
        monkeypatch.setenv("HALLUJUDGE_FALLBACK_URL", second.url)
        flags = ("--llm-url", server.url, "--llm-model", "tiny", "--fallback-model", "big")
        run = here("score", "argus", *given, *flags, "--out", tmp_path / "out")
        assert run.returncode == 0, run.stderr
    [row] = read_rows(tmp_path / "out" / "items.jsonl")
    first, last = row["evidence"]["judging"]
    assert (first["judge"], first["answered"], list(first["declined"])) == (
        "llm", 1, ["JUDGE_REFUSED"],
    )  # fmt: skip
    assert (last["judge"], last["answered"]) == ("fallback", 1)
    assert row["scores"] == {"cost_h": 1.0}


def test_captions_without_verdicts_need_a_judge(tmp_path: Path) -> None:
    (tmp_path / "captions.json").write_text(records(TARGET))
    run = here(
        "score", "argus", "--responses", tmp_path / "captions.json", "--out", tmp_path / "out"
    )
    assert run.returncode == 2
    assert "result_tuple" in run.stderr


def test_an_estimate_counts_the_lines(tmp_path: Path) -> None:
    (tmp_path / "captions.json").write_text(records(TARGET))
    with scripted(step(LINES, "LINE")) as server:
        flags = ("--llm-url", server.url, "--llm-model", "tiny", "--verdicts", "llm", "--estimate")
        run = here("score", "argus", "--responses", tmp_path / "captions.json", *flags,
                   "--out", tmp_path / "out")  # fmt: skip
        assert server.chats == 0
    assert str(len(LINES)) in run.stdout
