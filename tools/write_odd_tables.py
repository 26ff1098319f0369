"""Write tables of odd cells into tests/data/tables, each by the library that users write them with.

    python tools/write_odd_tables.py

Needs openpyxl, pandas, polars, pyarrow and XlsxWriter. Their versions go into ``versions.json``. A
library that can't hold a cell leaves its row out.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import no_options  # noqa: F401 - answers --help
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import xlsxwriter

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "data" / "tables"
KEYS = ("question_id", "answer", "label")
ROWS: tuple[tuple[str, str | None, str], ...] = (
    ("1", "No.\r\nNot at all.", "no"),
    ("2", "\r\n", "no"),
    ("3", "_x000D_", "yes"),
    ("4", "_x0041_ no", "no"),
    ("5", "=no", "no"),
    ("6", "{=no}", "no"),
    ("7", "#N/A", "yes"),
    ("8", "Yes,\x0bthere is.", "yes"),
    ("9007199254740993", "yes", "yes"),
    ("0042", "  No, it is not.  ", "no"),
    ("11", None, "no"),
    ("12", "\U0001f415 yes <a>&amp;", "yes"),
)
# openpyxl does not escape what it writes, refuses control characters, and takes #N/A for an error.
_NOT_BY_OPENPYXL = ("3", "4", "7", "8")


def main() -> None:
    """Write all tables, the same records as JSON lines, and the versions."""
    frame = pd.DataFrame(ROWS, columns=list(KEYS))
    by_columns = {key: [row[place] for row in ROWS] for place, key in enumerate(KEYS)}
    polars = pl.DataFrame(by_columns)
    table = pa.table(by_columns)
    lines = (json.dumps(dict(zip(KEYS, row, strict=True))) + "\n" for row in ROWS)
    (FOLDER / "records.jsonl").write_text("".join(lines), encoding="utf-8")
    write_xlsxwriter(FOLDER / "xlsxwriter.xlsx")
    write_openpyxl(FOLDER / "openpyxl.xlsx")
    frame.to_excel(FOLDER / "pandas-xlsxwriter.xlsx", index=False, engine="xlsxwriter")
    polars.write_excel(FOLDER / "polars.xlsx")
    polars.write_parquet(FOLDER / "polars.parquet")
    polars.write_csv(FOLDER / "polars.csv")
    texts = table.schema.field("answer").with_type(pa.dictionary(pa.int8(), pa.large_string()))
    pa.parquet.write_table(
        table.set_column(1, "answer", table["answer"].dictionary_encode().cast(texts.type)),
        FOLDER / "pyarrow.parquet",
        compression="zstd",
    )
    whole = table.filter([not row[0].startswith("0") for row in ROWS])
    ids = whole["question_id"].cast(pa.decimal128(20, 0))
    pa.parquet.write_table(whole.set_column(0, "question_id", ids), FOLDER / "decimals.parquet")
    pa.csv.write_csv(table, FOLDER / "pyarrow.csv")
    names = ("openpyxl", "pandas", "polars", "pyarrow", "xlsxwriter")
    versions = {name: version(name) for name in names}
    (FOLDER / "versions.json").write_text(json.dumps(versions, indent=1) + "\n", encoding="utf-8")


def write_xlsxwriter(path: Path) -> None:
    """Write a workbook by XlsxWriter, which makes formulas of texts, and stores 0 with them."""
    with xlsxwriter.Workbook(str(path)) as book:
        sheet = book.add_worksheet()
        for number, row in enumerate((KEYS, *ROWS)):
            sheet.write_row(number, 0, row)


def write_openpyxl(path: Path) -> None:
    """Write a workbook by openpyxl, which stores nothing with formulas."""
    book = openpyxl.Workbook()
    assert book.active is not None
    for row in (KEYS, *ROWS):
        if row[0] not in _NOT_BY_OPENPYXL:
            book.active.append(row)
    book.save(path)


if __name__ == "__main__":
    main()
