"""Tables of predictions in the three forms in which VLMEvalKit writes them."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest

__all__ = ["TABLES", "Rows", "Write"]

Rows: TypeAlias = Sequence[Mapping[str, Any]]
Write: TypeAlias = Callable[[Rows, Path], Path]


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


TABLES: Sequence[Write] = (write_json, write_tsv, write_xlsx)
"""Each writes rows to a file in a folder."""
