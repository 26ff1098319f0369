"""Archives that are checked and read in slices, here and in other processes."""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hallujudge.sdk import InputOptions
from hallujudge.sdk.archives import read_items
from hallujudge.sdk.archives.inputs import (
    CheckedArchive,
    CheckedSlice,
    ItemSource,
    SliceReader,
    spans_of,
)
from hallujudge.sdk.archives.json_files import read_values
from hallujudge.sdk.archives.json_lines import FilePart, Span
from hallujudge.sdk.errors import ArchiveError

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
    again = read_items("chair", path, tmp_path / "objects.json", check=checked)
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


CAPTIONS = 1300


class InSlices:
    """Checks slices as another process does, which is sent the reader."""

    def __init__(self, path: Path, size: int) -> None:
        self.spans = list(spans_of(path, size))
        self.told: list[CheckedSlice | None] = []

    def check(self, reader: SliceReader, _spans: Iterable[Span]) -> Iterator[CheckedSlice | None]:
        sent = pickle.loads(pickle.dumps(reader))  # what a pool does
        for span in self.spans:
            self.told.append(sent.check(*span))
            yield self.told[-1]


def lines() -> list[str]:
    """Return captions that carry objects, some of them with quotes or in other alphabets."""
    texts = ("A dog.", 'A "cat".', "Ein Hündchen.", None)
    names = (["dog"], ["cat", "dog"], [f"cup {CAPTIONS}"])
    rows = (
        {"image_id": n, "caption": texts[n % 4], "objects": names[n % 3]} for n in range(CAPTIONS)
    )
    return [json.dumps(row, ensure_ascii=n % 2 == 0) for n, row in enumerate(rows)]


def whole_and_in_slices(path: Path, references: Path | None) -> tuple[ItemSource, ItemSource]:
    whole = read_items("chair", path, references)
    spread = InSlices(path, 10_000)
    in_slices = read_items("chair", path, references, check=spread)
    assert len(spread.told) > 5
    assert None not in spread.told
    return whole, in_slices


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text,
        lambda text: text.rstrip("\n"),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: "\n\n" + text.replace("7}\n", "7}\n\n   \n"),
        lambda text: text + "\n" * 30_000,
    ],
    ids=["plain", "cut", "windows", "mark", "blank", "long end"],
)
@pytest.mark.parametrize("apart", [False, True], ids=["carried", "apart"])
def test_what_is_read(tmp_path: Path, change: Callable[[str], str], apart: bool) -> None:
    path, references = tmp_path / "captions.jsonl", tmp_path / "objects.json"
    path.write_text(change("".join(f"{line}\n" for line in lines())), encoding="utf-8", newline="")
    # Two images have no caption, which is noted.
    references.write_text(json.dumps({str(n): [f"cup {n % 9}"] for n in range(CAPTIONS + 2)}))
    whole, in_slices = whole_and_in_slices(path, references if apart else None)
    assert list(in_slices) == list(whole)
    assert len(in_slices) == len(whole) == CAPTIONS
    assert in_slices.notes == whole.notes
    assert bool(whole.notes) == apart
    assert in_slices.reference_names() == whole.reference_names()
    assert in_slices.slices is not None
    values = list(read_values(path))
    for mark in in_slices.slices.marks.marks:
        assert list(read_values(path, FilePart(mark))) == values[mark.values :]
        assert list(in_slices.start_at(mark.values)) == list(whole)[mark.values :]


@pytest.mark.parametrize(
    "faults",
    [
        {800: lines()[3]},
        {800: lines()[3], 1200: lines()[2]},
        {900: '{"image_id": 99999, "caption": "A cup.", "objects": []}'},
        {900: '{"caption": "A cup.", "objects": []}'},
        {900: '{"image_id": 900, "caption": 5, "objects": []}'},
        {900: '{"image_id": 900, "image_id": 901, "caption": "A cup.", "objects": []}'},
        {500: '{"image_id": null, "caption": "A cup.", "objects": []}', 3: "[1, 2]"},
        {1000: '{"image_id": 1000, "capt'},
        {CAPTIONS - 1: '{"image_id": 1000, "capt'},
        {1000: "no JSON", 1100: '{"caption": "no id"}'},
        {1000: "\udcff"},
    ],
)
def test_the_first_error_is_told(tmp_path: Path, faults: dict[int, str]) -> None:
    path, references = tmp_path / "captions.jsonl", tmp_path / "objects.json"
    written = lines()
    for number, fault in faults.items():
        written[number] = fault
    path.write_text("\n".join(written), encoding="utf-8", errors="surrogateescape")
    references.write_text(json.dumps({str(n): ["cup"] for n in range(CAPTIONS)}))
    with pytest.raises(ArchiveError) as whole:
        read_items("chair", path, references)
    with pytest.raises(ArchiveError) as sliced:
        read_items("chair", path, references, check=InSlices(path, 10_000))
    assert str(sliced.value) == str(whole.value)
    assert sliced.value.metadata == whole.value.metadata


@pytest.mark.parametrize("layout", ["list", "indented", "two in a line", "long", "held", "gzip"])
def test_other_layouts_are_checked_as_a_whole(tmp_path: Path, layout: str) -> None:
    written, path = lines(), tmp_path / "captions.json"
    values = [json.loads(line) for line in written]
    texts = {
        "list": json.dumps(values),
        "indented": "\n".join(json.dumps(value, indent=1) for value in values),
        "two in a line": "\n".join([*written[:-2], " ".join(written[-2:])]),
        "long": "\n".join([json.dumps({**values[0], "more": "x" * (1 << 21)}), *written[1:]]),
        "held": json.dumps({"data": values}),
    }
    if layout == "gzip":
        path.write_bytes(gzip.compress("\n".join(written).encode()))
    else:
        path.write_text(texts[layout], encoding="utf-8")
    whole = read_items("chair", path, None)
    in_slices = read_items("chair", path, None, check=InSlices(path, 10_000))
    assert list(in_slices) == list(whole)
    assert (in_slices.slices is None) == (whole.slices is None)


def test_lines_of_id_and_text_are_checked_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "captions.jsonl"
    rows = map(json.loads, lines())
    path.write_text("".join(json.dumps({str(r["image_id"]): r["caption"]}) + "\n" for r in rows))
    references = {str(number): ["cup"] for number in range(CAPTIONS)}
    whole = read_items("chair", path, references)
    in_slices = read_items("chair", path, references, check=InSlices(path, 10_000))
    assert [item.id for item in in_slices] == [item.id for item in whole] == list(references)
    assert in_slices.slices is None


def test_places_in_an_id_map_are_those_in_the_whole_archive(tmp_path: Path) -> None:
    path, id_map = tmp_path / "captions.jsonl", tmp_path / "ids.json"
    path.write_text("".join(f"{line}\n" for line in lines()), encoding="utf-8")
    id_map.write_text(json.dumps([f"image {n}" for n in range(CAPTIONS)]))
    options = InputOptions(own={"id_map": id_map})
    items = list(read_items("chair", path, None, options=options, check=InSlices(path, 10_000)))
    assert [item.id for item in items] == [f"image {n}" for n in range(CAPTIONS)]
