"""POPE in VLMEvalKit's layout, where a question lists its categories, separated by commas."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from oracles import vlmevalkit_pope as oracle

from hallujudge.metrics import Report, Score
from hallujudge.metrics.answers.yes_no import YES_NO_PARSERS
from hallujudge.sdk import Client

SPLITS = ("random", "popular", "adversarial")
NAMES = {"Overall": "f1", "acc": "accuracy", "precision": "precision", "recall": "recall"}


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def archive(goldens: Path) -> list[dict[str, Any]]:
    """Each image and question once, with all categories in which it is asked."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for split in SPLITS:
        answers = {
            row["question_id"]: row["text"]
            for row in read_lines(
                goldens / "pope" / f"llava-1.5-7b_coco_{split}_greedy.answers.jsonl"
            )
        }
        for question in read_lines(goldens / "pope" / f"coco_{split}.questions.jsonl"):
            key = (question["image"], question["text"])
            if key in rows:
                rows[key]["category"] += f",{split}"
                continue
            rows[key] = {
                "index": len(rows),
                "question": question["text"],
                "image_path": question["image"],
                "answer": question["label"].capitalize(),
                "category": split,
                "prediction": answers[question["question_id"]],
            }
    return list(rows.values())


def scored(rows: list[dict[str, Any]], **more: Any) -> Report:
    with Client.embedded() as client:
        records = [{"question_id": row["index"], "image": row["image_path"], **row} for row in rows]
        return client.score("pope", responses=records, **more)


def assert_line(scores: Mapping[str, Score], wanted: Mapping[str, float]) -> None:
    for theirs, ours in NAMES.items():
        value = scores[ours].value
        assert value is not None
        assert 100 * value == pytest.approx(wanted[theirs], rel=1e-12), ours


def wanted_table(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    read = YES_NO_PARSERS["vlmevalkit"]
    return oracle.table(
        [
            oracle.Row(row["category"], row["answer"], read(row["prediction"]) or "unknown")
            for row in rows
        ]
    )


def test_the_table_is_vlmevalkits(goldens: Path) -> None:
    rows = archive(goldens)
    assert any("," in row["category"] for row in rows)
    report = scored(rows, variant="vlmevalkit")
    wanted = wanted_table(rows)
    assert_line(report.scores, wanted.pop("Overall"))
    assert report.scores["accuracy"].n == 9000, "one row for each category of a question"
    assert report.coverage.items == len(rows) < 9000
    [note] = [note for note in report.notes if "rows" in note]
    assert f"9,000 rows of {len(rows):,} questions" in note
    assert set(report.groups["category"]) == set(wanted) == set(SPLITS)
    for category, line in wanted.items():
        assert_line(report.groups["category"][category], line)


def test_unread_answers_are_negative_as_in_the_tool(goldens: Path) -> None:
    rows = archive(goldens)
    for row in rows[::7]:
        row["prediction"] = "Perhaps."
    report = scored(rows, variant="vlmevalkit")
    wanted = wanted_table(rows)
    assert_line(report.scores, wanted["Overall"])
    assert_line(report.groups["category"]["popular"], wanted["popular"])


def test_failed_calls_are_counted_only_if_asked_for(goldens: Path) -> None:
    rows = archive(goldens)
    for row in rows[:300]:
        row["prediction"] = "Failed to obtain answer via API."
    wanted = wanted_table(rows)
    counted = scored(rows, variant="vlmevalkit", options={"count_empty": "true"})
    assert_line(counted.scores, wanted["Overall"])
    report = scored(rows, variant="vlmevalkit")
    assert report.coverage.reasons == {"RESPONSE_FAILED": 300}
    assert_line(report.scores, wanted_table(rows[300:])["Overall"])
    assert_line(report.groups["category"]["random"], wanted_table(rows[300:])["random"])


def test_other_variants_count_a_question_once_overall(goldens: Path) -> None:
    rows = archive(goldens)
    report = scored(rows)
    assert report.scores["accuracy"].n == len(rows)
    assert not any("rows of" in note for note in report.notes)
    assert sum(scores["accuracy"].n for scores in report.groups["category"].values()) == 9000


def test_the_table_does_not_depend_on_group_by(goldens: Path) -> None:
    rows = archive(goldens)
    whole = scored(rows, variant="vlmevalkit")
    report = scored(rows, variant="vlmevalkit", group_by=("image_path",))
    assert {n: s.value for n, s in report.scores.items()} == {
        n: s.value for n, s in whole.scores.items()
    }


def test_a_list_of_categories_is_read_alike(goldens: Path) -> None:
    rows = archive(goldens)
    wanted = wanted_table(rows)
    for row in rows:
        row["category"] = row["category"].split(",")
    report = scored(rows, variant="vlmevalkit")
    assert_line(report.scores, wanted["Overall"])
