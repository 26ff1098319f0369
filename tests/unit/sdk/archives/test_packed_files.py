"""Packed files: bombs, damage and windows; files that never end."""

from __future__ import annotations

import gzip
import io
import json
import os
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from support.messages import expected_message
from support.refused_archives import refused
from support.sizes import sized

from hallujudge.sdk.archives import json_files, local_files, read_items
from hallujudge.sdk.archives.formats import read_format
from hallujudge.sdk.archives.records import read_records
from hallujudge.sdk.errors import MissingExtraError

ROW = {"question_id": 1, "response": "Yes", "label": "yes"}
LINE = json.dumps(ROW) + "\n"


def zstd(data: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor(level=19).compress(data)


PACKERS: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "zst": zstd}
KINDS = {"gz": "gzip", "zst": "zstd"}
PACKED = Path(__file__).resolve().parents[3] / "data" / "packed"


@pytest.mark.parametrize("kind", PACKERS)
def test_packed_bombs_take_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    path = tmp_path / f"a.jsonl.{kind}"
    path.write_bytes(PACKERS[kind](b'{"a": "' + b" " * (1 << 28)))
    for limit in ("MAX_VALUE_CHARS", "MAX_RECORD_CHARS"):
        monkeypatch.setattr(json_files, limit, 1 << 20)
    tracemalloc.start()
    try:
        said = refused(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert f"{path} line 1: one value has more than" in said
    assert peak < 1 << 27
    monkeypatch.undo()
    path.write_bytes(PACKERS[kind](b"\n" * (1 << 24)))
    monkeypatch.setattr(local_files, "MAX_UNPACKED_BYTES", 1 << 20)
    assert f"the {KINDS[kind]} file unpacks to more than 1,048,576 bytes; split it" in refused(path)


@pytest.mark.parametrize("kind", PACKERS)
def test_logs_of_one_repeated_prompt_are_read(tmp_path: Path, kind: str) -> None:
    """A data URL in each record: zstd makes it a few thousand times smaller."""
    count = sized(3_000, 12_000)
    prompt = "data:image/png;base64," + "QUJD" * 3000
    rows = ({**ROW, "question_id": number, "prompt": prompt} for number in range(count))
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path = tmp_path / f"a.jsonl.{kind}"
    path.write_bytes(PACKERS[kind](data))
    assert len(data) > sized(1 << 25, 1 << 27)
    assert len(read_items("pope", path, None)) == count


def test_a_window_that_is_too_large_is_named_with_the_way_out() -> None:
    said = refused(PACKED / "long31.jsonl.zst")
    assert (
        "the zstd file needs 2,048 MiB of memory to be unpacked, as zstd --long packs it, and the "
        "limit is 128 MiB; pack it with at most --long=27, or unpack it: zstd -d --long=31 "
        "long31.jsonl.zst"
    ) in said


def test_a_type_that_pyarrow_lacks_is_named() -> None:
    said = refused(PACKED / "int128.parquet")
    assert "Integers with more than 64 bits not implemented" in said
    assert "write it with another type, such as text or 64-bit integers, or leave it out" in said


@pytest.mark.parametrize("dictionary", [True, False])
def test_parquet_rows_are_read_by_their_bytes(tmp_path: Path, dictionary: bool) -> None:
    """A dictionary of two long texts, to which all rows refer."""
    count = sized(60, 200)
    import pyarrow as pa
    import pyarrow.parquet

    texts = pa.array([str(at % 2) * (1 << 22) for at in range(count)])
    table = pa.table(
        {
            "question_id": range(count),
            "response": texts.dictionary_encode() if dictionary else texts,
            "label": ["yes"] * count,
        }
    )
    path = tmp_path / "a.parquet"
    pa.parquet.write_table(table, path, compression="zstd", dictionary_pagesize_limit=1 << 30)
    del table, texts
    pool = pa.default_memory_pool()
    tracemalloc.start()
    before = pool.bytes_allocated()
    most = rows = 0
    try:
        for record in read_records(read_format(path).source):
            rows += len(str(record.values["response"])) == 1 << 22
            most = max(most, pool.bytes_allocated() - before)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert rows == count
    assert max(peak, most) < 1 << 26, "of 240 or 800 MiB"


@pytest.mark.parametrize("kind", PACKERS)
@pytest.mark.parametrize("damage", ["cut", "overwritten"])
def test_damaged_packed_files(tmp_path: Path, kind: str, damage: str) -> None:
    data = bytearray(PACKERS[kind](os.urandom(5000).hex().encode() * 3))
    path = tmp_path / f"a.jsonl.{kind}"
    middle = len(data) // 2
    if damage == "cut":
        del data[middle:]
    else:
        data[middle : middle + 400] = b"\xff" * 400
    path.write_bytes(data)
    said = refused(path)
    assert str(path) in said


def test_zstd_frames_follow_each_other(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.zst"
    second = json.dumps({**ROW, "question_id": 2})
    path.write_bytes(zstd(LINE.encode()) + zstd(second.encode()))
    assert len(read_items("pope", path, None)) == 2


@pytest.mark.parametrize("kind", [0x50, 0x5F])
def test_zstd_frames_to_skip_are_skipped(tmp_path: Path, kind: int) -> None:
    """Files of pzstd have one before each frame of data; it holds the frame's size."""
    path = tmp_path / "a.jsonl.zst"
    with path.open("wb") as file:
        for number in (1, 2):
            frame = zstd((json.dumps({**ROW, "question_id": number}) + "\n").encode())
            file.write(struct.pack("<BBBBLL", kind, 0x2A, 0x4D, 0x18, 4, len(frame)) + frame)
    assert len(read_items("pope", path, None)) == 2
    path.write_bytes(path.read_bytes()[:-3])
    assert expected_message("sdk.archives.formats:the-zstd-file-is-damaged-or-cut") in refused(path)


def test_zstd_without_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd1234")
    with pytest.raises(MissingExtraError, match="zstd"):
        read_items("pope", path, None)


@pytest.mark.parametrize("packed", [False, True])
def test_one_endless_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool) -> None:
    monkeypatch.setattr(json_files, "MAX_RECORD_CHARS", 1 << 21)
    data = LINE.encode() + b'{"response": "' + os.urandom(1 << 21).hex().encode()
    path = tmp_path / "a.jsonl"
    path.write_bytes(gzip.compress(data, 1) if packed else data)
    assert expected_message(
        "sdk.archives.json_files:jsonl-line-one-value-has-more-than"
    ) in refused(path)


def test_a_caption_of_40_megabytes_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with path.open("w") as file:
        file.write(LINE + json.dumps({"response": "A dog and a cat. " * 2_400_000}) + "\n" + LINE)
    told = refused(path)
    assert told.startswith(f"{path} line 2: one value has more than 33,554,432 characters")


def test_binary_junk_after_good_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(LINE.encode() + b"\x00\xff\xfe" * 99)
    assert "binary data" in refused(path)
    path.write_bytes(LINE.encode() * 500 + b"\xff\xfe" * 99)
    assert f"{path} line 501: not UTF-8 text" in refused(path)


def false_size(data: bytes, name: bytes, size: int) -> bytes:
    """Return a zip file whose directory gives one member another unpacked size."""
    # The directory is at the end; an entry's size is 24 bytes after its beginning, its name 46.
    entry = data.rindex(name) - 46
    assert data[entry : entry + 4] == b"PK\x01\x02"
    return data[: entry + 24] + size.to_bytes(4, "little") + data[entry + 28 :]


@pytest.mark.parametrize("kind", ["eval", "xlsx"])
def test_zip_bombs_that_lie_about_their_size_are_not_unpacked(tmp_path: Path, kind: str) -> None:
    path, packed = tmp_path / f"a.{kind}", io.BytesIO()
    name = "samples/1_epoch_1.json" if kind == "eval" else "xl/workbook.xml"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", "{}")
        archive.writestr(name, b" " * (1 << 26))
    path.write_bytes(false_size(packed.getvalue(), name.encode(), 1000))
    tracemalloc.start()
    try:
        said = refused(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert f"{path}" in said
    assert "Bad CRC-32" in said
    assert peak < 1 << 25
