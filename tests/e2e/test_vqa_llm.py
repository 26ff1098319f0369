"""VQA by judge (POPE, Table 6) with a language model, over real HTTP."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.choice_judge import blocks_of, judged_here_and_there, step
from support.qa_running import report_of
from support.qa_samples import write_lines
from support.running import here, read_rows

PEOPLE = ["cat"] * 6 + ["kitten"] * 3 + ["dog"]
# Response -> the judge's choice; None is refused, and e is not offered for three answers.
ANSWERS = {"A tabby.": "a", "A puppy.": "c", "A bus.": "none", "A fox.": "e", "REFUSE": None}


@pytest.fixture(autouse=True)
def few_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALLUJUDGE_LLM_ATTEMPTS", "1")


def test_responses_are_matched_and_table_6_is_made(tmp_path: Path) -> None:
    rows = [
        {"question_id": n, "response": text, "judgement": "cat"} for n, text in enumerate(ANSWERS)
    ]
    asked = [
        {"question_id": n, "image_id": n, "question": "What is it?", "direct_answers": PEOPLE}
        for n in range(len(ANSWERS))
    ]
    (tmp_path / "questions.json").write_text(json.dumps(asked))
    answers = write_lines(tmp_path / "answers.jsonl", rows)
    given = ("-r", answers, "-R", tmp_path / "questions.json", "--judgements", "llm")
    judge = step({text: choice for text, choice in ANSWERS.items() if choice}, "RESPONSE")
    requests, _ = judged_here_and_there("vqa", given, judge, tmp_path)
    blocks = blocks_of(requests[0])
    assert blocks["QUESTION"] == "What is it?"
    assert blocks["ACCEPTED"] == "a: cat; b: kitten; c: dog"
    report = report_of(tmp_path / "here")
    assert report["scores"]["vqa_score"]["value"] == pytest.approx((1 + 0.3 + 0) / 3)
    assert report["scores"]["accuracy"]["value"] == pytest.approx(2 / 3)
    assert report["coverage"]["unscored"] == 2
    assert "judgements:llm|judge:tiny (vllm 0.32.0),vqa-1@" in report["signature"]
    lines = read_rows(tmp_path / "here" / "items.jsonl")
    found = [line["evidence"]["answers"][0]["answer"] for line in lines if line["scores"]]
    assert found == ["cat", "dog", "<NAN>"]
    assert lines[1]["evidence"]["given"] == "cat", "that of the file is kept beside the judge's"
    ran = here("analyze", tmp_path / "here", "--format", "json")
    [row] = json.loads(ran.stdout)["analyses"]["given_judgements"]["rows"]
    assert (row["items_of"], row["items"], row["agreement"]) == ("all", 3, pytest.approx(1 / 3))
    pope = {"question_id": 1, "image": "1", "text": "Is there a dog?", "label": "yes"}
    polled = write_lines(tmp_path / "pope.jsonl", [{**pope, "response": "Yes."}])
    assert here("score", "pope", "-r", polled, "-o", tmp_path / "pope").returncode == 0
    names = ("--name", "model=m", "--name", "model=m", "--rows", "model")
    layout = ("--columns", "metric,score", "--score", "f1", "--score", "vqa_score")
    table = here("table", tmp_path / "pope", tmp_path / "here", *names, *layout, "-f", "csv")
    assert table.returncode == 0, table.stderr
    assert "0.433" in table.stdout
    assert "1.0" in table.stdout
