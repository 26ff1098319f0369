"""HAVEN: which grades are right, what failed calls count as, and consistency within groups."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from hallujudge.metrics import Report
from hallujudge.metrics.haven import BENCHMARK
from hallujudge.sdk import Client


@pytest.mark.parametrize(
    ("text", "paper", "corrected"),
    [
        ("1", True, True),
        ("0", False, False),
        # The grader's text is stored as it is, and only the text 1 is right.
        ("1.", False, True),
        ("0.", False, False),
        ("Correct", False, True),
        ("Incorrect", False, False),
        ("The prediction is correct: 1", False, True),
        ("The prediction is incorrect: 0", False, False),
        ("It is not correct.", False, False),
        # What a failed call leaves, and grades that say neither, or both.
        ("F", False, None),
        (" ", False, None),
        ("10", False, None),
        ("1.5", False, None),
        ("Correct or incorrect?", False, None),
    ],
)
def test_grades_are_read_exactly_and_as_they_are_meant(
    text: str, *, paper: bool, corrected: bool | None
) -> None:
    first = BENCHMARK.trial.answers[0]
    answer = structs.replace(first, fields={**first.fields, "judgement": text})
    assert BENCHMARK.variant("paper").parse(answer).right is paper
    found = BENCHMARK.variant("corrected").parse(answer)
    assert (None if found.value is None else found.right) is corrected


def record(number: int, grade: str | None, group: str = "g", **more: Any) -> dict[str, Any]:
    return {
        **{"Index": number, "Question": "Is the man sewing?", "Answer": "No"},
        **{"Causes": "Conflict with prior", "Aspects": "Event", "Form": "Binary-choice"},
        **{"Video Path": f"video {group}", "Group_id": group, "Model Answer": "No."},
        **{"Correctness": grade, **more},
    }


def scored(records: list[dict[str, Any]], variant: str = "paper") -> Report:
    with Client.embedded() as client:
        return client.score("haven", responses=records, variant=variant)


def test_failed_calls_and_empty_grades_are_wrong_or_unscored() -> None:
    records = [record(1, "1"), record(2, "F"), record(3, ""), record(4, "0")]
    paper = scored(records)
    assert (paper.scores["accuracy"].value, paper.coverage.unscored) == (0.25, 0)
    assert any(note.startswith("2 grades, F among them, are not the text") for note in paper.notes)
    corrected = scored(records, "corrected")
    assert corrected.scores["accuracy"].value == 0.5
    assert corrected.coverage.reasons == {"NO_VERDICT": 2}


def test_an_answer_without_a_grade_is_unscored_in_both() -> None:
    without = {k: v for k, v in record(2, None).items() if k != "Correctness"}
    for variant in ("paper", "corrected"):
        report = scored([record(1, "1"), without], variant)
        assert report.coverage.reasons == {"VERDICT_NULL": 1}
        assert report.scores["accuracy"].value == 1.0


def test_only_groups_of_several_graded_answers_are_consistent_or_not() -> None:
    grades = {"a": ["1", "1"], "b": ["0", "0"], "c": ["1", "0"], "d": ["1"], "e": ["1", "F"]}
    held = [(group, grade) for group, given in grades.items() for grade in given]
    records = [record(n, grade, group) for n, (group, grade) in enumerate(held)]
    paper, corrected = (scored(records, variant).scores for variant in ("paper", "corrected"))
    assert paper["groups_of_several_all_right"].value == 0.25
    assert paper["groups_of_several_with_one_verdict"].value == 0.5
    # The group e has one grade that can be read.
    assert corrected["groups_of_several_all_right"].value == pytest.approx(1 / 3)
    assert corrected["groups_of_several_with_one_verdict"].value == pytest.approx(2 / 3)


def test_answers_without_a_group_are_in_none() -> None:
    records = [{**record(n, "1"), "Group_id": None} for n in range(3)]
    scores = scored(records).scores
    assert scores["accuracy"].value == 1.0
    assert scores["groups_of_several_all_right"].value is None
