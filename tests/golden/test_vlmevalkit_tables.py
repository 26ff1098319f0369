"""Tables of predictions that VLMEvalKit writes, of NaturalBench and CRPE, in its three forms."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.running import here

Rows = Sequence[Mapping[str, Any]]


def write_json(rows: Rows, folder: Path) -> Path:
    path = folder / "model_set.json"
    path.write_text(json.dumps(rows))
    return path


def write_tsv(rows: Rows, folder: Path) -> Path:
    path = folder / "model_set.tsv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), delimiter="\t")
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_xlsx(rows: Rows, folder: Path) -> Path:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (list(rows[0]), *(list(each.values()) for each in rows)):
        book.active.append(row)
    path = folder / "model_set.xlsx"
    book.save(path)
    return path


def naturalbench(goldens: Path) -> Rows:
    """Return the drawn answers, four to a group, in the order of the groups."""
    groups = json.loads((goldens / "naturalbench" / "drawn_1.questions.json").read_text())
    said = json.loads((goldens / "naturalbench" / "drawn_1.outputs.json").read_text())
    places = [(question, image) for question in (0, 1) for image in (0, 1)]
    return [
        {
            "index": 4 * number + place,
            "question": group[f"Question_{question}"],
            "answer": group[f"Image_{image}_Question_{question}"],
            "type": group["Question_Type"],
            "prediction": said[4 * number + place],
        }
        for number, group in enumerate(groups)
        for place, (question, image) in enumerate(places)
    ]


@pytest.mark.parametrize("write", [write_json, write_tsv, write_xlsx])
def test_a_table_of_naturalbench_has_the_numbers_of_the_script(
    goldens: Path, tmp_path: Path, write: Callable[[Rows, Path], Path]
) -> None:
    table = write(naturalbench(goldens), tmp_path)
    # Most of its labels are yes or no, as POPE's are.
    assert "naturalbench" in here("archive", "inspect", table).stdout
    run = here("score", "naturalbench", "-r", table, "-o", tmp_path / "out")
    assert run.returncode in (0, 3), run.stderr
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    wanted = json.loads((goldens / "naturalbench" / "expected.json").read_text())["drawn_1"]
    for name in ("accuracy", "question_accuracy", "image_accuracy", "group_accuracy"):
        found, value = report["scores"][name]["value"], wanted["scores"][name]
        assert found == pytest.approx(value, abs=1e-9), name


@pytest.mark.parametrize("write", [write_json, write_tsv, write_xlsx])
def test_a_table_of_crpe_has_the_numbers_of_the_script(
    goldens: Path, tmp_path: Path, write: Callable[[Rows, Path], Path]
) -> None:
    folder = goldens / "crpe"
    lines = (folder / "drawn_1.exist.questions.jsonl").read_text().splitlines()
    asked = {str(each["question_id"]): each for each in map(json.loads, lines)}
    answers = map(json.loads, (folder / "drawn_1.exist.answers.jsonl").read_text().splitlines())
    rows = [
        {
            "index": number,
            "question": asked[str(each["question_id"])]["text"],
            "category": asked[str(each["question_id"])]["category"],
            "answer": asked[str(each["question_id"])]["correct_option"],
            "prediction": each["text"],
        }
        for number, each in enumerate(answers)
    ]
    table = write(rows, tmp_path)
    assert "crpe" in here("archive", "inspect", table).stdout
    run = here("score", "crpe", "-r", table, "-o", tmp_path / "out")
    assert run.returncode in (0, 3), run.stderr
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    wanted = json.loads((folder / "expected.json").read_text())["drawn_1"]["exist"]["published"]
    [value] = [each["accuracy"] for each in wanted["by_category"].values()]
    assert 100 * report["scores"]["accuracy"]["value"] == pytest.approx(value, abs=1e-9)
