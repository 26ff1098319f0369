"""MMHal-Bench with a language model as judge, over real HTTP."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.choice_judge import blocks_of, judged_here_and_there, step
from support.qa_running import report_of
from support.running import read_rows

ANSWERS = {"It is yellow.": "6", "It is red.": "1", "A yellow cap.": "4", "REFUSE": None}


@pytest.fixture(autouse=True)
def few_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALLUJUDGE_LLM_ATTEMPTS", "1")


def test_answers_are_rated_and_a_server_writes_the_same_bytes(tmp_path: Path) -> None:
    records = [
        {
            "question_type": "attribute",
            "image_id": str(number),
            "image_content": ["Fire hydrant", "Cap"],
            "question": "What color is the cap?",
            "gt_answer": "The cap is yellow.",
            "model_answer": text,
            "review": "Rating: 5",
        }
        for number, text in enumerate(ANSWERS)
    ]
    (tmp_path / "answers.json").write_text(json.dumps(records))
    given = ("--responses", tmp_path / "answers.json", "--ratings", "llm")
    judge = step({text: rating for text, rating in ANSWERS.items() if rating}, "ANSWER")
    asked, more = judged_here_and_there("mmhal", given, judge, tmp_path)
    assert more == 1, "only the refusal is asked again"
    blocks = blocks_of(asked[0])
    assert (blocks["OBJECTS"], blocks["REFERENCE"]) == ("Fire hydrant, Cap", "The cap is yellow.")
    report = report_of(tmp_path / "here")
    assert report["scores"]["average_score"]["value"] == (6 + 1 + 4) / 3
    assert report["coverage"]["reasons"] == {"JUDGE_REFUSED": 1}
    assert "ratings:llm|judge:tiny (vllm 0.32.0),mmhal-1@" in report["signature"]
    first = read_rows(tmp_path / "here" / "items.jsonl")[0]
    assert first["evidence"]["given"] == "5"
