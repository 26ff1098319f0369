"""ChartHal: every figure of the released script for drawn items, and the marks of its parser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.running import here

# File -> its role, metric and number of records.
RECOGNISED = {
    "charthal/drawn_1.eval.json": ("responses", "charthal", 300),
}


DRAWS = ("drawn_1", "drawn_2")
EXACT = 1e-9


def report_of(file: Path, out: Path, *more: str) -> Any:
    run = here("score", "charthal", "-r", file, "-o", out, *more)
    assert run.returncode == 3, run.stderr
    return json.loads((out / "report.json").read_text())


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("remote", [False, True], ids=["here", "remote"])
def test_scores_are_those_of_the_released_script(
    goldens: Path, tmp_path: Path, request: pytest.FixtureRequest, draw: str, *, remote: bool
) -> None:
    server = ("--server", request.getfixturevalue("server")) if remote else ()
    report = report_of(goldens / f"charthal/{draw}.eval.json", tmp_path, *server)
    known = json.loads((goldens / "charthal/expected.json").read_text())[draw]
    wanted, accuracy = known["scores"], report["scores"]["accuracy"]
    assert 100 * accuracy["value"] == pytest.approx(wanted["overall_score"], abs=EXACT)
    assert report["coverage"]["items"] == wanted["total_queries"]
    assert report["coverage"]["unscored"] == wanted["exceptions"]
    assert report["totals"]["right"] == wanted["total_correct"]
    assert accuracy["n"] == wanted["total_queries"] - wanted["exceptions"]
    for field, key in (
        ("q_type", "by_type"),
        ("q_relation", "by_relation"),
        ("q_type_q_relation", "by_type_relation"),
    ):
        groups = report["groups"][field]
        found = {n.replace("/", "_"): 100 * g["accuracy"]["value"] for n, g in groups.items()}
        assert found == pytest.approx(wanted[key], abs=EXACT), field
    as_0 = known["surprises"]["exceptions_leave_the_denominator"][
        "overall_score_if_they_counted_as_0"
    ]
    [note] = [note for note in report["notes"] if "leave the denominator" in note]
    assert f"counted as 0, accuracy is {as_0 / 100:.4f}" in note


@pytest.mark.parametrize("draw", DRAWS)
def test_the_texts_marks_are_the_scores_that_the_released_parser_wrote(
    goldens: Path, tmp_path: Path, draw: str
) -> None:
    file = goldens / f"charthal/{draw}.eval.json"
    report = report_of(file, tmp_path, "--variant", "evaluated")
    items = json.loads(file.read_text())
    marks = [each["score"] for each in items.values() if type(each.get("score")) is int]
    others = [each for each in items.values() if type(each.get("score")) is not int]
    # The others were changed after the parser wrote them, and their texts state marks.
    marks += [int("1" in each["eval_resp"]) for each in others]
    counted = [mark for mark in marks if mark in (0, 1)]
    accuracy = report["scores"]["accuracy"]
    assert accuracy["n"] == len(counted)
    assert accuracy["value"] == pytest.approx(sum(counted) / len(counted), abs=EXACT)
