"""POPE on the command line: answers that do not belong to their questions are refused."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.qa_running import assert_refused, values_of
from support.qa_samples import write_lines
from support.running import here

THINGS = ("dog", "cat", "bus", "car")
QUESTIONS: list[dict[str, Any]] = [
    {
        "question_id": n,
        "image": f"{n}.jpg",
        "text": f"Is there a {thing} in the image?",
        "label": ("yes", "no")[n % 2],
    }
    for n, thing in enumerate(THINGS, 1)
]
RIGHT = {row["question_id"]: row["label"].title() for row in QUESTIONS}


def pope(folder: Path, answers: Sequence[Mapping[str, Any]], *more: str | Path) -> Any:
    return here(
        *("score", "pope", "--responses", write_lines(folder / "a.jsonl", answers)),
        *(
            "--references",
            write_lines(folder / "q.jsonl", QUESTIONS),
            "--out",
            folder / "out",
            "--overwrite",
        ),
        *more,
    )


def answer(row: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    number = row["question_id"]
    return {"question_id": number, "text": RIGHT[number], **more}


def test_an_answer_without_its_id_is_not_joined_by_its_place(tmp_path: Path) -> None:
    answers = [answer(row) for row in QUESTIONS]
    del answers[1]["question_id"]
    assert_refused(pope(tmp_path, answers), "line 2", "question_id")
    questions = [dict(row) for row in QUESTIONS]
    del questions[2]["question_id"]
    path = write_lines(tmp_path / "odd.jsonl", questions)
    run = pope(tmp_path, [answer(row) for row in QUESTIONS], "--references", path)
    assert_refused(run, "line 3", "question_id")


@pytest.mark.parametrize("key", ["prompt", "question"])
def test_answers_of_another_split_are_refused(tmp_path: Path, key: str) -> None:
    # The ids of POPE's splits are all 1 to 3,000: an id alone does not tell them apart.
    asked = [row["text"] for row in QUESTIONS]
    same = [
        answer(row, **{key: f"<image>\n{text.upper()} Answer yes or no."})
        for row, text in zip(QUESTIONS, asked, strict=True)
    ]
    assert pope(tmp_path, same).returncode == 0
    mixed = [dict(row) for row in same]
    mixed[2][key] = "Is there a dining table in the image?"
    assert_refused(pope(tmp_path, mixed), "3", "dining table", "bus", "--join id")
    assert pope(tmp_path, mixed, "--join", "id").returncode == 0


def test_answers_in_another_order_are_refused(tmp_path: Path) -> None:
    own = [{"question": row["text"], "answer": RIGHT[row["question_id"]]} for row in QUESTIONS]
    assert pope(tmp_path, own, "--join", "order").returncode == 0
    assert values_of(tmp_path / "out")["accuracy"] == 1
    assert_refused(pope(tmp_path, own[::-1], "--join", "order"), "car", "dog", "--join text")
    bare = [{"answer": row["answer"]} for row in own]
    one_line = tmp_path / "one_line.json"
    one_line.write_text(json.dumps(bare))
    run = here(
        *("score", "pope", "-r", one_line, "-R", write_lines(tmp_path / "q.jsonl", QUESTIONS)),
        *("--join", "order", "-o", tmp_path / "out", "--overwrite"),
    )
    assert run.returncode == 0, run.stderr


def test_a_label_beside_a_prediction_is_not_the_answer(tmp_path: Path) -> None:
    # VLMEvalKit's records: `answer` is the label, `prediction` what the model wrote.
    rows = [
        {"question_id": q["question_id"], "answer": q["label"].title(), "prediction": "no"}
        for q in QUESTIONS
    ]
    assert pope(tmp_path, rows).returncode == 0
    assert values_of(tmp_path / "out")["accuracy"] == 0.5
    path = write_lines(tmp_path / "alone.jsonl", rows)
    run = here("score", "pope", "--responses", path, "--out", tmp_path / "alone")
    assert run.returncode == 0, run.stderr
    assert values_of(tmp_path / "alone")["accuracy"] == 0.5


@pytest.mark.parametrize("text", [["Yes"], "Yes"])
def test_logs_of_lmms_eval(tmp_path: Path, text: object) -> None:
    rows = [
        {
            "doc_id": n,
            "target": q["label"],
            "filtered_resps": text,
            "pope_accuracy": {
                "question_id": q["question_id"],
                "score": 1.0,
                "prediction": "yes",
                "ground_truth": q["label"],
            },
        }
        for n, q in enumerate(QUESTIONS)
    ]
    assert pope(tmp_path, rows[::-1]).returncode == 0
    assert values_of(tmp_path / "out")["accuracy"] == 0.5
    path = write_lines(tmp_path / "alone.jsonl", rows)
    run = here("score", "pope", "--responses", path, "--out", tmp_path / "alone")
    assert run.returncode == 0, run.stderr
    assert values_of(tmp_path / "alone")["yes_ratio"] == 1


def test_ids_in_messages_stay_on_one_line(tmp_path: Path) -> None:
    rows = [{"image": q["image"], "question": "What is it?", "answer": "Yes"} for q in QUESTIONS]
    run = pope(tmp_path, rows)
    assert_refused(run, "1.jpg: What is it?")
    assert run.stderr.count("\n") == 1


def test_all_parsers_side_by_side(tmp_path: Path) -> None:
    said = ["Yes.", "NO", "isn't", None]
    rows = [answer(row) | {"text": text} for row, text in zip(QUESTIONS, said, strict=True)]
    run = pope(tmp_path, rows, "--all-parsers", "--variant", "strict")
    assert run.returncode == 3, run.stderr
    table = json.loads((tmp_path / "out" / "parsers.json").read_text())
    assert list(table) == [
        *("published", "opera", "lmms-eval", "vlmevalkit", "repope", "first-word", "strict")
    ]
    assert table["strict"] == {
        name: pytest.approx(value) for name, value in values_of(tmp_path / "out").items()
    }
    assert [table[name]["yes_ratio"] for name in ("published", "opera", "vlmevalkit")] == [
        1.0,
        1 / 3,
        1 / 3,
    ]
    assert table["lmms-eval"]["unparsed_rate"] == pytest.approx(2 / 3)
    assert "every parser" in run.stdout
    assert "vlmevalkit" in run.stdout
    assert pope(tmp_path, rows).returncode == 3
    assert not (tmp_path / "out" / "parsers.json").exists(), "another run's table"
