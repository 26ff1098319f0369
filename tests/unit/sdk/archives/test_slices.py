"""Captions are read from the middle of an archive, here and in another process."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from hallujudge.sdk import InputOptions
from hallujudge.sdk.archives import read_items
from hallujudge.sdk.archives.inputs import CheckedArchive, ItemSource

COUNT = 1100


def archive(folder: Path) -> Path:
    path = folder / "captions.jsonl"
    rows = ({"image_id": n, "caption": f"A dog and {n} cats."} for n in range(COUNT))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "objects.json").write_text(json.dumps({str(n): ["dog"] for n in range(COUNT)}))
    return path


def read(folder: Path, responses: Path, options: InputOptions | None = None) -> ItemSource:
    return read_items("chair", responses, folder / "objects.json", options=options)


def test_items_from_a_position_on_are_those_of_the_whole_archive(tmp_path: Path) -> None:
    source = read(tmp_path, archive(tmp_path))
    whole = list(source)
    for first in (0, 1, 511, 512, 700, COUNT - 1, COUNT):
        assert list(source.start_at(first)) == whole[first:]


def test_another_process_reads_the_same_items(tmp_path: Path) -> None:
    source = read(tmp_path, archive(tmp_path))
    assert source.slices is not None
    reader = pickle.loads(pickle.dumps(source.slices.reader))  # what a pool does
    assert reader == source.slices.reader
    mark = source.slices.marks.before(600)
    assert mark.values == 512
    assert list(reader.items(mark)) == list(source)[512:]
    after = source.slices.marks.before(COUNT)
    assert list(reader.items(mark, after.offset - mark.offset)) == list(source)[512:1024]


def test_an_archive_that_was_checked_is_read_where_it_is_needed(tmp_path: Path) -> None:
    path = archive(tmp_path)
    source = read(tmp_path, path)
    assert source.slices is not None
    checked = CheckedArchive(count=COUNT, marks=source.slices.marks)
    again = read_items("chair", path, tmp_path / "objects.json", checked=checked)
    assert len(again) == COUNT
    assert list(again) == list(source)
    # What is before the place is not read: it may as well be no caption.
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], *(b"x" * (len(x) - 1) + b"\n" for x in lines[1:512])]))
    with path.open("ab") as file:
        file.writelines(lines[512:])
    assert [item.id for item in again.start_at(1098)] == ["1098", "1099"]


def test_equal_objects_of_captions_are_one_tuple(tmp_path: Path) -> None:
    path = tmp_path / "captions.jsonl"
    given = (["dog", "cat "], ["cat"], ["dog", "cat "], ["dog", "cat"])
    rows = ({"id": n, "caption": "A dog.", "objects": names} for n, names in enumerate(given))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    items: list[Any] = list(read_items("chair", path, None))
    both = ("dog", "cat")
    assert [item.reference_objects for item in items] == [both, ("cat",), both, both]
    assert len({id(item.reference_objects) for item in items}) == 2


@pytest.mark.parametrize("how", ["gzip", "duplicates", "mapping"])
def test_other_archives_are_read_from_their_beginning(tmp_path: Path, how: str) -> None:
    path = archive(tmp_path)
    options = InputOptions(allow_duplicates=how == "duplicates")
    if how == "gzip":
        path = tmp_path / "captions.jsonl.gz"
        path.write_bytes(gzip.compress((tmp_path / "captions.jsonl").read_bytes()))
    references: object = tmp_path / "objects.json"
    if how == "mapping":
        references = json.loads((tmp_path / "objects.json").read_text())
    source = read_items("chair", path, references, options=options)  # type: ignore[arg-type]  # JSON
    assert source.slices is None
    assert [item.id for item in source.start_at(1099)] == ["1099"]
