"""ChartHal: which items have a mark, by the file, by the released parser, and as it is meant."""

from __future__ import annotations

from typing import Any

import pytest

from hallujudge.metrics import AnswersItem, Report
from hallujudge.metrics.charthal import BENCHMARK
from hallujudge.sdk import Client
from hallujudge.sdk.archives import read_items


def record(number: int = 1, *, at: str = "desc/irrel", **more: Any) -> dict[str, Any]:
    kind, _, relation = at.partition("/")
    return {
        **{"id": f"{number}_0", "figure_path": f"images/{number}.jpg"},
        **{"q_type": kind, "q_relation": relation, "question": "What is the red line?"},
        **{"ref_answer": "There is no red line.", "response": "No red line.", **more},
    }


def marks(**more: Any) -> list[str | None]:
    """Return the marks of an item by each variant."""
    [item] = read_items("charthal", [record(**more)], None)
    assert isinstance(item, AnswersItem)
    return [variant.parse(item.answers[0]).value for variant in BENCHMARK.variants]


def scored(records: list[dict[str, Any]], variant: str = "published") -> Report:
    with Client.embedded() as client:
        return client.score("charthal", responses=records, variant=variant)


@pytest.mark.parametrize(
    ("score", "text", "published", "evaluated", "corrected"),
    [
        (1, "Score: 1", "1", "1", "1"),
        (0, "**Score:** 0", "0", "0", "0"),
        # True, false, 1.0 and 0.0 equal a mark; texts equal none.
        (True, "Score: 1", "1", "1", "1"),
        (0.0, "score 0.", "0", "0", "0"),
        ("1", "Score: 1", None, "1", "1"),
        ("-", "Score: 0\nIt is judged as asked.", None, "0", "0"),
        # Rounded, halves to even: a mark between 0 and 1 is none.
        (1, "Score: 0.6", "1", "1", None),
        (0, "Score: 0.5", "0", "0", None),
        (7, "Score: 7", None, None, None),
        (10, "10/10", None, None, None),
        (10, "Score: 99", None, None, None),
        # Another number comes first.
        (4, "The chart has 4 series. So the mark is 1.", None, None, None),
        (1, "The chart has 1 series. So the score: 0", "1", "0", "0"),
        # A score on the fourth line is not found.
        (-1, "Read.\nCompared.\nWeighed.\nScore: 1", None, None, "1"),
        (0, "Score: 0\nOn reflection, Score: 1", "0", "0", "1"),
        (-1, "Request failed after: timeout", None, None, None),
        (1, "", "1", None, "1"),
        (1, "Well done.", "1", None, "1"),
    ],
)
def test_marks_are_read_by_each_rule(
    score: object, text: str, published: str | None, evaluated: str | None, corrected: str | None
) -> None:
    assert marks(score=score, eval_resp=text) == [published, evaluated, corrected]


def test_an_item_without_a_score_is_an_exception_unless_its_text_is_read() -> None:
    assert marks(eval_resp="Score: 1") == [None, "1", "1"]
    assert scored([record(), record(2, score=1)]).coverage.reasons == {"VERDICT_NULL": 1}


def test_exceptions_leave_every_denominator_and_that_is_said() -> None:
    given = [1, 0, 7, "1"]
    report = scored([record(n, score=mark) for n, mark in enumerate(given)])
    assert (report.scores["accuracy"].value, report.scores["accuracy"].n) == (0.5, 2)
    assert report.scores["exception_rate"].value == 0.5
    [note] = [note for note in report.notes if "leave the denominator" in note]
    assert note.startswith("2 of 4 answers have no mark of 0 or 1")
    assert note.endswith("counted as 0, accuracy is 0.2500, not 0.5000")


def test_a_part_of_the_benchmark_has_a_score_where_the_script_stops() -> None:
    records = [record(1, score=1), record(2, at="open/normal", score=7)]
    groups = scored(records).groups
    assert groups["q_type_q_relation"]["desc/irrel"]["accuracy"].value == 1.0
    assert groups["q_type_q_relation"]["open/normal"]["accuracy"].value is None
    assert groups["q_relation"]["normal"]["accuracy"].value is None


def test_an_answer_that_is_empty_has_its_mark() -> None:
    assert scored([record(score=0, response="")]).scores["accuracy"].value == 0.0
