"""INFACT's answers on the command line: labels, letters and lines that disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.qa_running import assert_refused, report_of, values_of
from support.qa_samples import write_lines
from support.running import here

from hallujudge.metrics.infact.mode_analyses import overconfidence

LINE: dict[str, Any] = {
    "question_id": "q1",
    "operator": "base",
    "dimension": "factuality",
    "category": "fluid mechanics reasoning",
    "order_sensitive": False,
    "label": "A",
    "response": "A",
}


def infact(folder: Path, lines: Sequence[Mapping[str, Any]]) -> Any:
    path = write_lines(folder / "lines.jsonl", lines)
    return here("score", "infact", "--responses", path, "--out", folder / "out", "--overwrite")


def test_a_letter_and_a_label_in_words_is_unread(tmp_path: Path) -> None:
    run = infact(tmp_path, [{**LINE, "label": "opening the door", "response": "B"}])
    assert run.returncode == 3, run.stderr
    assert report_of(tmp_path / "out")["coverage"]["reasons"] == {"BASE_UNPARSED": 1}


def test_a_label_that_is_not_an_option_makes_no_answer_wrong(tmp_path: Path) -> None:
    given = {**LINE, "label": "E", "options": ["closing it", "opening it"]}
    assert infact(tmp_path, [given]).returncode == 3
    assert report_of(tmp_path / "out")["coverage"]["reasons"] == {"LABEL_INVALID": 1}
    for label in ("B", "opening it", "(B) opening it"):
        rows = [{**given, "label": label, "response": "Opening it."}]
        assert infact(tmp_path, rows).returncode == 0
        assert values_of(tmp_path / "out")["base_accuracy"] == 1


@pytest.mark.parametrize(
    ("said", "right"),
    [("B", 1), ("(B)", 1), ("Opening the door.", 1), ("A", 0), ("closing it", 0), ("Answer: A", 0)],
)
def test_a_label_that_has_its_letter_before_it(tmp_path: Path, said: str, right: int) -> None:
    for label in ("B. opening the door", "(B) opening the door"):
        assert infact(tmp_path, [{**LINE, "label": label, "response": said}]).returncode == 0
        assert values_of(tmp_path / "out")["base_accuracy"] == right


def test_sure_by_its_number_is_overconfident_whatever_it_says(tmp_path: Path) -> None:
    # A.4 asks for the confidence first.
    split = overconfidence([(0.9, True), (0.5, True), (None, True), (0.3, False), (0.5, False)])
    assert (split.hallucination_like, split.knowledge_gap_like, split.other) == (1, 3, 1)
    said = "B, but I'm not sure"
    assert infact(tmp_path, [{**LINE, "response": said, "confidence": 0.9}]).returncode == 0
    values = values_of(tmp_path / "out")
    assert (values["overconfident_share"], values["knowledge_gap_share"]) == (1, 0)


@pytest.mark.parametrize(
    ("key", "value"), [("dimension", "faithfulness"), ("category", "scene text recognition")]
)
def test_lines_of_a_question_that_disagree(tmp_path: Path, key: str, value: str) -> None:
    other = {**LINE, "operator": "shuffle", key: value}
    assert_refused(infact(tmp_path, [LINE, other]), "q1", key)
    bare = {name: text for name, text in LINE.items() if name != key}
    assert infact(tmp_path, [bare, other]).returncode == 0
    assert value in report_of(tmp_path / "out")["groups"][key]
