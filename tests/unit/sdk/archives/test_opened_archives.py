"""Opened archives: copies of records are left out, and records say how the model was asked."""

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
from support.messages import expected_message

from hallujudge.sdk import Client
from hallujudge.sdk.archives import InputOptions, read_items
from hallujudge.sdk.archives.found_files import FoundFile
from hallujudge.sdk.archives.inputs import Responses
from hallujudge.sdk.archives.opened_archives import Opened, recorded_asking
from hallujudge.sdk.errors import ArchiveError

DROP = InputOptions(drop_equal_duplicates=True)
OBJECTS = {"1": ["cat"], "2": ["cat"], "3": ["cat"]}


def caption(number: int, text: str = "A cat.", **more: Any) -> dict[str, Any]:
    return {"image_id": number, "caption": text, **more}


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_each_copy_is_left_out_with_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A list of long paths is shortened.
    monkeypatch.chdir(tmp_path)
    rows = [caption(n, answer_id=f"a{at}") for at, n in enumerate((1, 2, 2, 3, 1))]
    path = written(Path("a.jsonl"), rows)
    items = read_items("chair", path, OBJECTS, options=DROP)
    assert [item.id for item in items] == ["1", "2", "3"]
    [note] = items.notes
    assert note.startswith(expected_message("sdk.archives.opened_archives:two-copies"))
    assert f"{path} line 3, {path} line 5" in note


def test_copies_in_the_files_of_other_processes_are_left_out(tmp_path: Path) -> None:
    labelled = [{"question_id": n, "response": "Yes.", "label": "yes"} for n in (1, 2, 3)]
    written(tmp_path / "rank0.jsonl", labelled[:2])
    written(tmp_path / "rank1.jsonl", [labelled[2], labelled[0]])
    pattern = str(tmp_path / "rank*.jsonl")
    assert [item.id for item in read_items("pope", pattern, None, options=DROP)] == ["1", "2", "3"]
    with pytest.raises(ArchiveError):
        read_items("pope", pattern, None)


@pytest.mark.parametrize("metric", ["chair", "pope", "tri-he"])
def test_other_texts_of_one_id_stop_the_run_and_name_the_option(metric: str) -> None:
    more = {"label": "yes", "question": "?", "triplets": [["cat", "on", "mat"]]}
    own = {"objects": ["cat"], "response": "A cat."} | more
    rows = [{"image_id": 1, "question_id": 1, **own}, {"image_id": 1, "question_id": 1, **own}]
    keys = {"chair": "response", "pope": "response", "tri-he": "response"}
    options = InputOptions(drop_equal_duplicates=True, text_key=keys[metric])
    assert len(read_items(metric, rows, None, options=options)) == 1
    with pytest.raises(ArchiveError, match="drop_equal_duplicates=True"):
        read_items(metric, rows, None, options=InputOptions(text_key=keys[metric]))
    rows[1]["response"] = "A dog."
    with pytest.raises(ArchiveError, match=r"more than once|duplicate"):
        read_items(metric, rows, None, options=options)


def test_a_list_may_have_more_files_than_may_be_open(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    files = [written(tmp_path / f"{n}.jsonl", [caption(n)]) for n in range(200)]
    with files[0].open() as next_free:
        most = next_free.fileno() + 150
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, limits[1]))
    try:
        items = list(read_items("chair", files, {f"{n}": ["cat"] for n in range(200)}))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert [item.id for item in items] == [f"{n}" for n in range(200)]


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
