"""POPE's question files, one for each category."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.messages import expected_message

from hallujudge.metrics import AnswersItem
from hallujudge.sdk.archives import read_items
from hallujudge.sdk.errors import ArchiveError


def pope_files(folder: Path, *names: str) -> list[Path]:
    """Write POPE's question files, whose ids begin again in each."""
    for name, label in zip(names, ("yes", "no"), strict=False):
        rows = [
            {
                "question_id": n,
                "image": "a.jpg",
                "text": f"A {n}?",
                "label": label,
            }
            for n in (1, 2)
        ]
        (folder / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return [folder / name for name in names]


def answers_of(*categories: str) -> list[dict[str, object]]:
    return [
        {"question_id": n, "category": category, "question": f"A {n}?", "response": "Yes"}
        for category in categories
        for n in (1, 2)
    ]


def test_questions_of_a_category_are_told_apart_by_the_name_of_their_file(tmp_path: Path) -> None:
    files = pope_files(tmp_path, "coco_pope_random.json", "coco_pope_popular.json")
    items = read_items("pope", answers_of("popular", "random"), files)
    assert [(item.id, item.label) for item in items if isinstance(item, AnswersItem)] == [
        ("popular:1", "no"),
        ("popular:2", "no"),
        ("random:1", "yes"),
        ("random:2", "yes"),
    ]


def test_one_question_file_refuses_the_answers_of_other_categories(tmp_path: Path) -> None:
    [file] = pope_files(tmp_path, "coco_pope_random.json")
    assert len(read_items("pope", answers_of("random"), file)) == 2
    with pytest.raises(
        ArchiveError,
        match=expected_message(
            "sdk.archives.hallusion_bench:questions-that-the-references-lack-popular"
        ),
    ):
        read_items("pope", answers_of("random", "popular"), file)


def test_answers_without_a_category_get_none_from_the_name_of_the_question_file(
    tmp_path: Path,
) -> None:
    [file] = pope_files(tmp_path, "coco_pope_random.json")
    answers = [{"question_id": n, "text": "Yes"} for n in (1, 2)]
    items = list(read_items("pope", answers, file))
    assert [(item.id, dict(item.fields)) for item in items] == [("1", {}), ("2", {})]


def test_swapped_files_are_not_scored(tmp_path: Path) -> None:
    """Questions as responses, and answers as labels, would make every answer right."""
    questions = pope_files(tmp_path, "coco_pope_random.json")[0]
    answers = [{"question_id": n, "answer": "Yes"} for n in (1, 2)]
    questions.write_text(questions.read_text().replace("A ", "Is it a "))
    with pytest.raises(
        ArchiveError,
        match=expected_message("sdk.archives.answers:the-responses-are-questions-such-as-is"),
    ):
        read_items("pope", questions, answers)


def test_a_label_in_a_file_of_its_own_needs_its_question(tmp_path: Path) -> None:
    answers = [{"question_id": n, "answer": "Yes"} for n in (1, 2)]
    files = [tmp_path / "questions.jsonl", tmp_path / "labels.jsonl"]
    values = ({"image": "a.jpg", "text": "A cup?"}, {"label": "yes"})
    for path, more in zip(files, values, strict=True):
        path.write_text("".join(f"{json.dumps({'question_id': n, **more})}\n" for n in (1, 2)))
    with pytest.raises(ArchiveError) as refused:
        read_items("pope", answers, files)
    assert str(refused.value).startswith(f"{files[1]} line 1: a label is found by image and ques")
    assert "found label, question_id" in str(refused.value)


def test_an_answer_may_ask_back() -> None:
    rows = [
        {"question_id": 1, "response": "Yes, why do you ask?", "label": "yes"},
        {"question_id": 2, "response": "No.", "label": "no"},
    ]
    assert len(read_items("pope", rows, None)) == 2


@pytest.mark.parametrize("key", ["response", "prediction"])
def test_answers_added_to_a_question_file_keep_its_questions(key: str) -> None:
    row = {"question_id": 1, "image": "a.jpg", "text": "Is there a dog in the image?"}
    [joined] = read_items("pope", [{"question_id": 1, "response": "Yes"}], [{**row, "label": "no"}])
    [own] = read_items("pope", [{**row, "label": "no", key: "Yes"}], None)
    assert own == joined
    assert isinstance(own, AnswersItem)
    assert own.answers[0].question == row["text"]


def test_other_texts_of_answers_are_no_questions() -> None:
    row = {"question_id": 1, "image": "a.jpg", "text": "Yes", "label": "no", "response": "Yes"}
    [own] = read_items("pope", [row], None)
    assert isinstance(own, AnswersItem)
    assert own.answers[0].question == ""


@pytest.mark.parametrize(("first", "told"), [(0, True), (2, True), (5, False)])
def test_answers_that_are_counted_from_another_number_are_told(first: int, *, told: bool) -> None:
    asked = {str(n): {"image": "a.jpg", "text": f"A {n}?", "label": "yes"} for n in (1, 2, 3)}
    answers = [{"question_id": first + n, "response": "Yes"} for n in range(3)]
    with pytest.raises(ArchiveError) as refused:
        read_items("pope", answers, asked)
    message = expected_message("sdk.archives.joins:counted-from-another-number")
    assert (message in str(refused.value)) is told
