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
    table = json.loads((tmp_path / "out" / "parsers.json").read_text())["parsers"]
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


SEEN = {
    "a.jpg": [{"label": "puppy", "score": 0.9}, {"label": "couch", "score": 0.8}],
    "b.jpg": [{"label": "dog", "score": 0.7}, {"label": "cat", "score": 0.6}],
    "c.jpg": [{"label": "cat", "score": 0.9}, {"label": "car", "score": 0.8}],
    "d.jpg": [{"label": "car", "score": 0.9}, {"label": "bus", "score": 0.2}],
}


def built(folder: Path, *arguments: str | Path) -> Any:
    return here("build", "pope", *arguments, "--questions", "4", "-o", folder / "built.jsonl")


def test_questions_are_built_from_detections(tmp_path: Path) -> None:
    path = tmp_path / "seen.json"
    path.write_text(json.dumps(SEEN))
    given = ("--detections", path, "--graph", "coco", "--min-score", "0.5")
    run = built(tmp_path, *given, "--sampling", "popular")
    assert run.returncode == 0, run.stderr
    assert "1 detections have a lower score" in run.stderr
    assert "1 image has no questions, such as d.jpg" in run.stderr
    rows = [json.loads(line) for line in (tmp_path / "built.jsonl").read_text().splitlines()]
    yes = {(row["image"], row["object"]) for row in rows if row["label"] == "yes"}
    # The graph joins puppy with dog.
    assert yes == {(image, name) for image, names in JOINED.items() for name in names}
    assert all(row["object"] not in JOINED[row["image"]] for row in rows if row["label"] == "no")
    # The same objects in a file of objects give the same questions.
    objects = tmp_path / "objects.json"
    objects.write_text(json.dumps({**JOINED, "d.jpg": ["car"]}))
    before = (tmp_path / "built.jsonl").read_bytes()
    assert built(tmp_path, "--objects", objects, "--sampling", "popular").returncode == 0
    assert (tmp_path / "built.jsonl").read_bytes() == before


JOINED = {"a.jpg": ["couch", "dog"], "b.jpg": ["cat", "dog"], "c.jpg": ["car", "cat"]}


def test_questions_are_built_from_instances(tmp_path: Path) -> None:
    names = {1: "dog", 2: "cat", 3: "couch", 4: "car"}
    content = {
        "images": [{"id": n, "file_name": f"{n}.jpg"} for n in (1, 2, 3)],
        "categories": [{"id": key, "name": name} for key, name in names.items()],
        "annotations": [
            {"image_id": image, "category_id": kind}
            for image, kinds in {1: (1, 3), 2: (2, 1), 3: (4, 2)}.items()
            for kind in kinds
        ],
    }
    path = tmp_path / "instances_val.json"
    path.write_text(json.dumps(content))
    run = built(tmp_path, "--instances", path)
    assert run.returncode == 0, run.stderr
    rows = [json.loads(line) for line in (tmp_path / "built.jsonl").read_text().splitlines()]
    yes = {(row["image"], row["object"]) for row in rows if row["label"] == "yes"}
    assert {name for image, name in yes if image == "1"} == {"couch", "dog"}


def test_one_source_of_objects_is_given(tmp_path: Path) -> None:
    path = tmp_path / "seen.json"
    path.write_text(json.dumps(SEEN))
    assert_refused(built(tmp_path), "--objects, --instances and --detections")
    both = built(tmp_path, "--objects", path, "--detections", path)
    assert_refused(both, "--objects, --instances and --detections")
    assert_refused(built(tmp_path, "--objects", path, "--min-score", "0.5"), "--min-score")
    assert_refused(built(tmp_path, "--detections", path, "--graph", "none"), "graph 'none'")
    run = here("build", "pope", "--detections", path, "-o", path)
    assert_refused(run, "is one of the inputs")
