"""Cells that tables hold otherwise than JSON: every table scores as its records as JSON lines do.

``tools/write_odd_tables.py`` wrote the files of ``tests/data/tables``, whose ``versions.json``
names the libraries.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hallujudge.sdk import Client, read_items
from hallujudge.sdk.errors import ArchiveError

TABLES = Path(__file__).resolve().parents[3] / "data" / "tables"
FILES = sorted(
    path.name for path in TABLES.iterdir() if path.suffix in (".xlsx", ".parquet", ".csv")
)


def records() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (TABLES / "records.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("name", FILES)
def test_an_odd_table_scores_as_its_records_do(name: str) -> None:
    items: list[Any] = list(read_items("pope", TABLES / name, None))
    ids = {item.id for item in items}
    same = [record for record in records() if record["question_id"] in ids]
    if name.endswith(".csv"):
        # A CSV file has an empty text for an empty cell.
        same = [{**record, "answer": record["answer"] or ""} for record in same]
    expected: list[Any] = list(read_items("pope", same, None))
    assert _texts(items) == _texts(expected)
    assert len(items) >= 8
    with Client.embedded() as client:
        found, wanted = (client.score("pope", responses=each) for each in (TABLES / name, same))
    assert found.scores == wanted.scores
    assert found.coverage == wanted.coverage


def _texts(items: list[Any]) -> dict[str, str | None]:
    """Return responses by id; openpyxl writes a line feed for both line ends."""
    return {item.id: item.response and item.response.replace("\r\n", "\n") for item in items}


def workbook(path: Path, rows: list[list[object]]) -> Path:
    from openpyxl import Workbook

    book = Workbook()
    assert book.active is not None
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def test_texts_are_decoded_and_literal_marks_are_kept() -> None:
    items: list[Any] = list(read_items("pope", TABLES / "xlsxwriter.xlsx", None))
    found = {item.id: item.response for item in items}
    assert found["1"] == "No.\r\nNot at all."
    assert found["2"] == "\r\n"
    assert found["3"] == "_x000D_"
    assert found["4"] == "_x0041_ no"
    assert found["8"] == "Yes,\x0bthere is."


def test_formulas_that_were_never_evaluated_are_texts() -> None:
    source = read_items("pope", TABLES / "xlsxwriter.xlsx", None)
    found: dict[str, Any] = {item.id: item.response for item in source}  # type: ignore[attr-defined]
    assert (found["5"], found["6"]) == ("=no", "{=no}")
    expected = "formulas, which are not evaluated, in row 6, row 7"
    assert any(expected in note for note in source.notes)


def test_errors_are_empty_cells_with_a_note(tmp_path: Path) -> None:
    rows: list[list[object]] = [["question_id", "response", "label"], [1, "#N/A", "yes"]]
    path = workbook(tmp_path / "a.xlsx", [*rows, [2, "Yes", "yes"]])
    source = read_items("pope", path, None)
    assert [item.response for item in source] == [None, "Yes"]  # type: ignore[attr-defined]
    assert any("errors such as #N/A, which are read as empty, in row 2" in n for n in source.notes)
    path = workbook(tmp_path / "b.xlsx", [rows[0], ["#N/A", "Yes", "yes"]])
    with pytest.raises(ArchiveError, match=r"b\.xlsx row 2: null is not an id"):
        list(read_items("pope", path, None))


def test_array_formulas_without_a_value_are_their_texts(tmp_path: Path) -> None:
    from openpyxl.worksheet.formula import ArrayFormula

    path = workbook(
        tmp_path / "a.xlsx",
        [["question_id", "response", "label"], [1, ArrayFormula("B2", "=SUM(A1:A2*2)"), "yes"]],
    )
    (item,) = list(read_items("pope", path, None))
    assert item.response == "{=SUM(A1:A2*2)}"  # type: ignore[attr-defined]


@pytest.mark.parametrize("number", [2**53 + 1, 2**53, 12345678901234567890])
def test_ids_that_lost_their_digits_are_refused_with_the_reason(
    tmp_path: Path, number: int
) -> None:
    rows: list[list[object]] = [["question_id", "response", "label"], [number, "Yes", "yes"]]
    expected = (
        r"a\.xlsx row 2: the id \d+ may have lost its last digits: tables hold numbers of more "
        r"than 15 digits as floats; write ids as texts"
    )
    with pytest.raises(ArchiveError, match=expected):
        list(read_items("pope", workbook(tmp_path / "a.xlsx", rows), None))
    rows[1][0] = 2**53 - 1
    (item,) = list(read_items("pope", workbook(tmp_path / "b.xlsx", rows), None))
    assert item.id == "9007199254740991"
