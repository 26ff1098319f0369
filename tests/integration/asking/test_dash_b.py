"""DASH-B's released lists of images, and records of its data set, as questions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import scripted_llm as llm
from support.asked_files import images, run_of, written
from support.pictures import png

from hallujudge.asking import ask
from hallujudge.metrics import AnswersItem
from hallujudge.sdk import Client
from hallujudge.sdk.archives import read_items
from hallujudge.sdk.errors import ArchiveError


def test_released_lists_of_images_are_questions(
    tmp_path: Path, yes_server: llm.ScriptedLlm
) -> None:
    """DASH-B lists dataset -> object -> files, and one file name is of several objects."""
    lists = [
        written(tmp_path / "dash_benchmark_neg.json", {"coco": {"cup": ["5.png"]}}),
        written(
            tmp_path / "dash_benchmark_pos.json", {"coco": {"cup": ["8.png"], "bed": ["8.png"]}}
        ),
    ]
    images(tmp_path, "neg/coco/cup/5.png", "pos/coco/cup/8.png", "pos/coco/bed/8.png")
    result = ask(run_of(yes_server, tmp_path, "dash-b", *lists))
    assert (result.answered, result.questions) == (3, 3), result.examples
    asked = {
        (llm.prompt_of(body).splitlines()[0], *llm.images_of(body)) for body in yes_server.requests
    }
    assert asked == {
        ("Does this image show a cup?", png(0)),
        ("Does this image show a cup?", png(1)),
        ("Does this image show a bed?", png(2)),
    }
    with Client.embedded() as client:
        report = client.score("dash-b", responses=tmp_path / "answers.jsonl", references=lists)
    assert (report.true_positive_rate, report.true_negative_rate) == (1, 0)
    assert not [note for note in report.notes if "lists" in note or "no answer" in note]


def test_a_list_of_images_without_its_side_is_refused(
    tmp_path: Path, yes_server: llm.ScriptedLlm
) -> None:
    images(tmp_path, "5.png")
    path = written(tmp_path / "images.json", {"coco": {"cup": ["5.png"]}})
    with pytest.raises(ArchiveError, match="_pos or _neg"):
        ask(run_of(yes_server, tmp_path, "dash-b", path))
    assert yes_server.chats == 0


def test_a_record_without_an_object_is_not_asked(
    tmp_path: Path, yes_server: llm.ScriptedLlm
) -> None:
    images(tmp_path, "1.png")
    record = {"img_id": "1.png", "object_name": "", "label": "yes"}
    result = ask(
        run_of(yes_server, tmp_path, "dash-b", written(tmp_path / "questions.json", [record]))
    )
    assert (result.unanswered, yes_server.requests) == ({"QUESTION_MISSING": 1}, [])


def test_lists_of_images_must_be_the_benchmarks(tmp_path: Path) -> None:
    rows = [{"img_id": "1.jpg", "object_name": "cup", "gt": "no", "response": "No."}]
    for name, content, said in (
        ("images_neg", {"coco": {"cup": ["1.jpg", "2.jpg"]}}, ""),
        ("images", {"coco": {"cup": ["1.jpg"]}}, "_pos or _neg"),
        ("images_pos", {"coco": {"cup": "1.jpg"}}, "list of image files"),
        ("images_neg", [{"coco": 1}], "list of image files"),
    ):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(content))
        if said:
            with pytest.raises(ArchiveError, match=said):
                read_items("dash-b", rows, path)
        else:
            [note] = read_items("dash-b", rows, path).notes
            assert note == "1 of 2 questions in the references have no answer"
    (tmp_path / "images_neg.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ArchiveError, match="JSON files"):
        read_items("dash-b", rows, tmp_path / "images_neg.csv")


@pytest.mark.parametrize(
    "record",
    [
        # The released script writes what it read under the key that is the label in the data set.
        {"img_id": "88.jpg", "object_name": "cup", "gt": "no", "answer": "yes"},
        {"question_id": "88.jpg", "object": "cup", "answer": "no"},
    ],
)
def test_an_answer_is_a_label_in_records_of_the_data_set_alone(record: dict[str, str]) -> None:
    [item] = read_items("dash-b", [{**record, "response": "Yes."}], None)
    assert isinstance(item, AnswersItem)
    assert [(answer.response, answer.label) for answer in item.answers] == [("Yes.", "no")]
