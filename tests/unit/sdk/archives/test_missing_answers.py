"""Missing answers that count as the released scripts count them, and are named in reports."""

from __future__ import annotations

from typing import Any

import pytest

from hallujudge.sdk import Client, Report
from hallujudge.sdk.archives import read_items
from hallujudge.sdk.errors import ArchiveError

SCENES = [
    {"id": "1", "Scene change": "Yes", "Locations": "From a hall to a garden."},
    {"id": "2", "Scene change": "No", "Locations": "None"},
    {"id": "3", "Scene change": "No", "Locations": "None"},
]
ASKED = {
    "0": [
        {"q": "Is he running?", "a": {"c1": "Yes", "c2": "No"}},
        {"q": "Is he sitting?", "a": {"c1": "No", "c2": "Yes"}},
    ]
}


def orders(*texts: str | None) -> list[dict[str, Any]]:
    rows = enumerate(zip(texts, ("AB", "BA", "AB"), strict=True))
    return [
        {"id": str(n), "video": "v", "Correct Answer": label, "Model Answer": text}
        for n, (text, label) in rows
    ]


def scored(metric: str, responses: Any, references: Any = None, **more: Any) -> Report:
    with Client.embedded() as client:
        return client.score(metric, responses=responses, references=references, **more)


def note_on_missing(report: Report) -> str:
    return next((note for note in report.notes if "missing, empty or failure texts" in note), "")


@pytest.mark.parametrize("variant", ["published", "corrected"])
@pytest.mark.parametrize("text", ["", " \n", "Error: request timed out", float("nan")])
def test_an_empty_order_is_wrong_and_noted_with_the_score_without_it(
    text: Any, variant: str
) -> None:
    report = scored("vidhalluc-tsh", orders("AB", "BA", text), variant=variant)
    assert report.scores["accuracy"].value == pytest.approx(2 / 3)
    note = note_on_missing(report)
    assert note.startswith("1 answers are missing"), note
    assert note.endswith("without their questions accuracy is 1.0000, not 0.6667")
    assert not note_on_missing(scored("vidhalluc-tsh", orders("AB", "BA", "C"), variant=variant))


def test_a_null_order_is_unscored_as_released_and_wrong_if_corrected() -> None:
    published = scored("vidhalluc-tsh", orders("AB", "BA", None))
    assert (published.scores["accuracy"].value, published.coverage.scored) == (1.0, 2)
    corrected = scored("vidhalluc-tsh", orders("AB", "BA", None), variant="corrected")
    assert corrected.scores["accuracy"].value == pytest.approx(2 / 3)
    assert note_on_missing(corrected)


def test_an_empty_scene_is_no_as_released_and_wrong_if_corrected() -> None:
    texts = ("Scene change: Yes, Locations: None", "Scene change: No", "")
    answers = [{"id": str(n), "response": text} for n, text in enumerate(texts, 1)]
    published = scored("vidhalluc-sth", answers, SCENES)
    assert (published.totals["tn"], published.totals["fp"]) == (2, 0)
    assert "overall_score is" in note_on_missing(published)
    corrected = scored("vidhalluc-sth", answers, SCENES, variant="corrected")
    assert (corrected.totals["tn"], corrected.totals["fp"]) == (1, 1)
    assert "without their videos overall_score is 0.6000, not " in note_on_missing(corrected)


def test_a_failure_text_is_not_parsed_as_an_answer() -> None:
    corrected = scored(
        "vidhalluc-tsh", orders("AB", "BA", '{"error": "AB is busy"}'), variant="corrected"
    )
    assert corrected.scores["accuracy"].value == pytest.approx(2 / 3)


def answered(*clips: Any, key: str = "a") -> dict[str, Any]:
    own = [{} if each is ... else {key: each} for each in clips]
    return {"0": [{"q": "?", **each} for each in own]}


RIGHT, OTHER = {"c1": "Yes", "c2": "No"}, {"c1": "No", "c2": "Yes"}


@pytest.mark.parametrize("clips", [..., None, {}, {"c1": "", "c2": None}])
def test_questions_without_clips_are_wrong_as_released_and_noted(clips: Any) -> None:
    report = scored("vidhalluc-bqa", answered(RIGHT, clips), ASKED)
    assert report.scores["accuracy"].value == 0.5
    note = note_on_missing(report)
    assert note.startswith("2 answers are missing"), note
    assert "accuracy is 1.0000, not 0.5000" in note


def test_empty_clips_in_every_question_are_wrong_as_released_and_noted() -> None:
    report = scored("vidhalluc-bqa", answered({}, {}), ASKED)
    assert report.scores["accuracy"].value == 0.0
    assert note_on_missing(report).startswith("4 answers are missing")


@pytest.mark.parametrize(
    "answers",
    [
        answered(..., ...),
        answered(None, None),
        answered(RIGHT, OTHER, key="my_a"),
        {"0": [{"q": "?", "a": RIGHT}, {"q": "?", "my_a": OTHER}]},
    ],
)
def test_clips_under_another_key_or_in_no_question_are_an_error(answers: Any) -> None:
    with pytest.raises(ArchiveError, match="no key for clips: tried a; found"):
        read_items("vidhalluc-bqa", answers, ASKED)


@pytest.mark.parametrize("clips", [[], "Yes", 7, False])
def test_clips_that_are_no_object_are_an_error(clips: Any) -> None:
    with pytest.raises(ArchiveError, match="question 2 of '0' has no clips"):
        read_items("vidhalluc-bqa", answered(RIGHT, clips), ASKED)


def test_answers_to_clips_without_a_label_are_noted() -> None:
    fewer = {"0": [{"q": "?", "a": {"c2": "No"}}, ASKED["0"][1]]}
    [note] = read_items("vidhalluc-bqa", answered(RIGHT, OTHER), fewer).notes
    assert note == "1 of 2 questions have answers without a label, which do not count: c1"


@pytest.mark.parametrize("text", [None, "", " "])
def test_a_missing_answer_about_an_event_is_wrong_as_released_and_noted(text: str | None) -> None:
    asked = [{"question": "Is it a dog?", "answer": "Yes.", "prediction": "Yes."}]
    silent = [{**asked[0], "prediction": text}]
    videos = [{"id": n, "split": "entire", "qa": qa} for n, qa in enumerate((asked, silent))]
    report = scored("event-hallusion", videos)
    assert report.scores["question_accuracy"].value == 0.5
    assert "question_accuracy is 1.0000, not 0.5000" in note_on_missing(report)
    corrected = scored("event-hallusion", videos, variant="corrected")
    assert corrected.scores["question_accuracy"].value == 1.0
    assert not note_on_missing(corrected)


CHOICES = {"A": "running", "B": "sitting"}


@pytest.mark.parametrize(
    ("choices", "problem"),
    [
        (None, "'Choices' has no choices"),
        ({}, "'Choices' has no choices"),
        ([], "'Choices' has no choices"),
        ("", "'Choices' has no choices"),
        ({"A": None, "B": "sitting"}, "choices must be"),
        ({"A": {"text": "running"}, "B": "sitting"}, "choices must be"),
        (["running", None], "choices must be"),
    ],
)
def test_choices_that_are_no_texts_are_an_error(choices: Any, problem: str) -> None:
    row = {"id": "0", "video": "0", "Question": "?", "Correct Answer": "A", "Model Answer": "B"}
    assert read_items("vidhalluc-mcq", [{**row, "Choices": CHOICES}], None)
    with pytest.raises(ArchiveError, match=problem):
        read_items("vidhalluc-mcq", [{**row, "Choices": choices}], None)
