"""How a model was asked is read from every record, in every format, into the signature."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support.archive_samples import write_table

from hallujudge.sdk import Client
from hallujudge.sdk.archives.found_files import FoundFile
from hallujudge.sdk.archives.inputs import Responses
from hallujudge.sdk.archives.opened_archives import Opened
from hallujudge.sdk.archives.readers import read_items
from hallujudge.sdk.archives.recorded_asking import recorded_asking

WAYS = [{"prompts": "0a1b", "how": "chat,max=512"}, {"prompts": "2c3d", "how": "chat,max=512"}]
WANTED = {"prompts": "0a1b+2c3d", "asked": "chat,max=512"}


def rows() -> list[dict[str, Any]]:
    """The first record says nothing, and the last one is of another prompt."""
    asked = [None, *WAYS[:1] * 3, WAYS[1]]
    return [
        {"question_id": n, "response": "Yes.", "label": "yes", **({"asked": way} if way else {})}
        for n, way in enumerate(asked)
    ]


def as_lines(path: Path) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows()))


def as_list(path: Path) -> None:
    path.write_text(json.dumps(rows(), indent=1))


def as_packed(path: Path) -> None:
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows()).encode()))


def as_cells(path: Path) -> None:
    """A table as pandas writes it: objects are what Python prints."""
    pd.DataFrame(rows()).to_csv(path, index=False)


def as_columns(path: Path) -> None:
    found = pd.json_normalize(rows())
    found.to_csv(path, index=False, sep="\t", quoting=csv.QUOTE_MINIMAL)


def as_workbook(path: Path) -> None:
    table = [{**row, "asked": json.dumps(row.get("asked"))} for row in rows()]
    write_table(path, table)


def as_parquet(path: Path) -> None:
    pd.DataFrame(rows()).to_parquet(path)


WRITERS: dict[str, Callable[[Path], None]] = {
    "a.jsonl": as_lines,
    "a.json": as_list,
    "a.jsonl.gz": as_packed,
    "a.csv": as_cells,
    "a.tsv": as_columns,
    "a.xlsx": as_workbook,
    "a.parquet": as_parquet,
}


def asked_in(responses: Responses) -> dict[str, str]:
    """Return how the model was asked, as the reader of an archive finds it."""
    return dict(read_items("pope", responses, None).asked)


@pytest.mark.parametrize("name", WRITERS)
def test_all_records_of_every_format_say_it(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / name)
    assert asked_in(tmp_path / name) == WANTED


def test_values_in_memory_say_it() -> None:
    assert asked_in(rows()) == WANTED
    assert asked_in(pd.DataFrame(rows())) == WANTED
    assert asked_in({str(n): row for n, row in enumerate(rows())}) == WANTED


def test_other_archives_say_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"question_id": 1, "response": "I asked.", "label": "yes", "asked": "Is it?"}')
    assert asked_in(path) == {}
    absent = tmp_path / "absent.jsonl"
    files = [FoundFile(path=absent, name=str(absent))]
    assert recorded_asking(absent, Opened(source=absent, files=files)) == {}


def test_the_signature_names_several_values(tmp_path: Path) -> None:
    as_list(tmp_path / "a.json")
    with Client.embedded() as client:
        report = client.score("pope", responses=tmp_path / "a.json")
    assert "|prompts:0a1b+2c3d|asked:chat,max=512|" in report.signature
