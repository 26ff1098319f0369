"""Hostile and broken files: each is refused with one sentence that names it."""

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
from typing import Any

import pytest
from openpyxl import Workbook
from support.archive_samples import QUESTION_LAYOUTS, QUESTIONS, write_lines
from support.messages import expected_message

from hallujudge.sdk import InputOptions
from hallujudge.sdk.archives import json_files, local_files, read_items, workbooks
from hallujudge.sdk.archives.formats import read_format
from hallujudge.sdk.archives.records import read_records
from hallujudge.sdk.errors import ArchiveError, HallujudgeError, MissingExtraError

ROW = {"question_id": 1, "response": "Yes", "label": "yes"}
LINE = json.dumps(ROW) + "\n"


def refused(path: Path | str, **options: object) -> str:
    """Return the message of the error, which names the file and is one paragraph."""
    inputs = InputOptions(**options)  # type: ignore[arg-type]  # built by the cases
    with pytest.raises(HallujudgeError) as caught:
        list(read_items("pope", path, None, options=inputs))
    message = str(caught.value)
    assert "\n" not in message
    return message


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
    """A data URL in each of 12,000 records: zstd makes it a few thousand times smaller."""
    prompt = "data:image/png;base64," + "QUJD" * 3000
    rows = ({**ROW, "question_id": number, "prompt": prompt} for number in range(12_000))
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path = tmp_path / f"a.jsonl.{kind}"
    path.write_bytes(PACKERS[kind](data))
    assert len(data) > 1 << 27
    assert len(read_items("pope", path, None)) == 12_000


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
    """A dictionary of two long texts, to which 200 rows refer."""
    import pyarrow as pa
    import pyarrow.parquet

    texts = pa.array([str(at % 2) * (1 << 22) for at in range(200)])
    table = pa.table(
        {
            "question_id": range(200),
            "response": texts.dictionary_encode() if dictionary else texts,
            "label": ["yes"] * 200,
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
    assert rows == 200
    assert max(peak, most) < 1 << 26, "of 800 MiB"


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


JUNK = {
    "junk.json": (b"\x93\xf2\x81" * 50, "not UTF-8 text"),
    "junk.csv": (b"\x00\x01\x02" * 50, "binary data of an unknown format"),
    "junk.xlsx": (b"no workbook", "not an XLSX workbook"),
    "junk.parquet": (b"PAR1junkPAR1", "the Parquet file is damaged or cut off ("),
    "junk.eval": (
        b"PK\x03\x04junk",
        "cut off (File is not a zip file); copy it again",
    ),
    "photo.zip": (b"", "a zip file that is neither"),
    "page.html.json": (b"<html></html>", "a web page, such as of a login or an error; download"),
    "page.jsonl": (b"\n<!DOCTYPE html><p>", "a web page, such as of a login or an error; download"),
    "answers.jsonl.bz2": (b"BZh91AY&SY\0", "packed with bzip2; unpack it"),
    "twice.gz": (gzip.compress(gzip.compress(b"{}")), "packed with gzip inside another packed"),
    "folder.tar": (bytes(257) + b"ustar\x0000", "packed with tar; unpack it"),
    "text.txt": (b"just words", "Expecting value"),
}


@pytest.mark.parametrize("name", JUNK)
def test_files_that_are_not_archives(tmp_path: Path, name: str) -> None:
    data, said = JUNK[name]
    if not data:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr("photo.txt", "x")
        data = stream.getvalue()
    (tmp_path / name).write_bytes(data)
    message = refused(tmp_path / name)
    assert said in message
    assert name in message


def test_a_workbook_that_unpacks_to_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = QUESTION_LAYOUTS["VLMEvalKit xlsx"](tmp_path, QUESTIONS)
    monkeypatch.setattr(workbooks, "MAX_UNPACKED_BYTES", 1000)
    assert expected_message("sdk.archives.workbooks:save-the-sheet-as-csv") in refused(path)


def test_a_log_with_a_sample_that_unpacks_to_too_much(tmp_path: Path) -> None:
    path = tmp_path / "bomb.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", "{}")
        archive.writestr("samples/1_epoch_1.json", b" " * ((1 << 26) + 1))
    assert expected_message(
        "sdk.archives.formats:samples-epoch-json-the-sample-unpacks-to"
    ) in refused(path)


def test_a_log_packed_with_zstd_whose_sample_is_damaged(tmp_path: Path) -> None:
    path = QUESTION_LAYOUTS["Inspect AI eval zstd"](tmp_path, QUESTIONS)
    data = path.read_bytes()
    at = data.index(b"samples/") + 60
    path.write_bytes(data[:at] + bytes(255 - byte for byte in data[at : at + 9]) + data[at + 9 :])
    said = refused(path)
    assert "samples/" in said
    assert expected_message("sdk.archives.formats:the-zip-file-is-damaged-or-cut") in said


def test_a_log_without_samples(tmp_path: Path) -> None:
    path = tmp_path / "empty.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", "{}")
    assert "no finished sample" in refused(path)


def workbook(path: Path, rows: list[list[object]]) -> Path:
    book = Workbook()
    assert book.active is not None
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def test_formulas_are_texts_or_stored_values(tmp_path: Path) -> None:
    path = workbook(
        tmp_path / "a.xlsx",
        [
            ["question_id", "response", "label"],
            [1, '=HYPERLINK("http://x")', "yes"],
            [2, "Yes", "yes"],
        ],
    )
    items = read_items("pope", path, None)
    assert [item.response for item in items] == ['=HYPERLINK("http://x")', "Yes"]  # type: ignore[attr-defined]  # pope
    assert any(
        expected_message("sdk.archives.workbooks:formulas-which-are-not-evaluated-in-row") in note
        for note in items.notes
    )


def test_cells_that_excel_cut_are_noted(tmp_path: Path) -> None:
    rows: list[list[object]] = [["question_id", "response", "label"], [1, "x" * 32_767, "yes"]]
    notes = read_items("pope", workbook(tmp_path / "a.xlsx", rows), None).notes
    assert any(
        expected_message("sdk.archives.workbooks:excel-cuts-texts-off-in-row") in note
        for note in notes
    )


def test_long_cells_of_csv_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"question_id,response,label\n1,{'x' * 300_000},yes\n")
    (item,) = read_items("pope", path, None)
    assert len(item.response) == 300_000  # type: ignore[attr-defined]  # pope


# Folders ------------------------------------------------------------------------------------------


def test_a_folder_of_one_run_is_read(tmp_path: Path) -> None:
    path = QUESTION_LAYOUTS["lmms-eval C"](tmp_path, QUESTIONS)
    for given in (tmp_path, f"{tmp_path}/*/*samples*.jsonl", path.parent):
        assert len(read_items("pope", given, None)) == len(QUESTIONS)


def test_splits_of_one_run_are_read_together(tmp_path: Path) -> None:
    for task in ("pope_adv", "pope_pop"):
        path = QUESTION_LAYOUTS["lmms-eval C"](tmp_path / task, QUESTIONS)
        path.rename(tmp_path / f"2025_samples_{task}.jsonl")
    items = list(read_items("pope", tmp_path, None, group_by=("category",)))
    assert len({item.id for item in items}) == 2 * len(QUESTIONS)
    assert {item.fields["category"] for item in items} == {"pope_adv", "pope_pop"}


def test_folders_of_two_models_are_refused(tmp_path: Path) -> None:
    for model in ("llava", "qwen"):
        QUESTION_LAYOUTS["VLMEvalKit json"](tmp_path / model, QUESTIONS)
    said = refused(tmp_path)
    assert (
        expected_message("sdk.archives.archive_files:runs-of-models-llava-model-qwen-model") in said
    )
    assert f"hallujudge score all {tmp_path}" in said


def test_mixed_layouts_are_refused(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", [lmms_row(number) for number in range(3)])
    QUESTION_LAYOUTS["VLMEvalKit json"](tmp_path / "x", QUESTIONS).rename(tmp_path / "b.json")
    said = refused(tmp_path)
    assert "files of 2 layouts" in said
    assert (
        expected_message("sdk.archives.layouts.harnesses:jsonl-is-an-lmms-eval-sample-file") in said
    )
    assert "b.json is VLMEvalKit's table" in said


def lmms_row(number: int) -> dict[str, object]:
    score = {"question_id": number, "prediction": "yes", "ground_truth": "yes"}
    return {"doc_id": number, "filtered_resps": ["Yes"], "pope_accuracy": score}


def test_two_files_with_the_same_ids_are_refused(tmp_path: Path) -> None:
    for name in ("first.jsonl", "second.jsonl"):
        write_lines(tmp_path / name, [lmms_row(number) for number in range(3)])
    said = refused(tmp_path)
    assert (
        expected_message(
            "sdk.archives.archive_files:first-jsonl-and-second-jsonl-both-hold", tmp_path, tmp_path
        )
        in said
    )


def test_judged_tables_of_vlmevalkit_are_left_out(tmp_path: Path) -> None:
    path = QUESTION_LAYOUTS["VLMEvalKit json"](tmp_path, QUESTIONS)
    rows = json.loads(path.read_text())
    judged = path.with_name("model_POPE_auxmatch.json")
    judged.write_text(json.dumps([{**row, "extracted": "Yes", "score": True} for row in rows]))
    path.with_name("model_POPE_score.csv").write_text("split,Overall,acc,precision,recall\n")
    (path.parent / "model_POPE_tmp.pkl").write_bytes(b"\x80\x04")
    items = read_items("pope", tmp_path, None)
    assert len(items) == len(QUESTIONS)
    assert len(read_items("pope", judged, None)) == len(QUESTIONS)
    path.unlink()
    assert len(read_items("pope", tmp_path, None)) == len(QUESTIONS)


def test_linked_files_are_read_once(tmp_path: Path) -> None:
    path = QUESTION_LAYOUTS["VLMEvalKit json"](tmp_path, QUESTIONS)
    (path.parent.parent / path.name).symlink_to(path)
    assert len(read_items("pope", tmp_path, None)) == len(QUESTIONS)


@pytest.mark.parametrize("given", ["nothing*.jsonl", "empty", "nowhere.jsonl"])
def test_nothing_to_read(tmp_path: Path, given: str) -> None:
    (tmp_path / "empty").mkdir()
    assert given.split(".")[0] in refused(str(tmp_path / given))


def test_a_folder_for_another_metric_says_what_it_holds(tmp_path: Path) -> None:
    QUESTION_LAYOUTS["lmms-eval C"](tmp_path, QUESTIONS)
    with pytest.raises(ArchiveError) as caught:
        read_items("chair", tmp_path, {"1": ["dog"]})
    assert expected_message(
        "sdk.archives.layouts.harnesses:an-lmms-eval-sample-file-of-task"
    ) in str(caught.value)
    assert f"hallujudge archive inspect {tmp_path}" in str(caught.value)


# Keys ---------------------------------------------------------------------------------------------


def test_a_map_that_names_no_key(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", [{"out": "Yes", "doc": {"gt": "yes"}}])
    said = refused(path, key_map={"response": "output", "label": "doc.gt"})
    assert expected_message("sdk.archives.readers:jsonl-line-no-value-for-output-which") in said
    items = read_items(
        "pope", path, None, options=InputOptions(key_map={"response": "out", "label": "doc.gt"})
    )
    assert [(i.response, i.label) for i in items] == [("Yes", "yes")]  # type: ignore[attr-defined]  # pope


def test_files_of_plain_records_are_not_guessed(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text(LINE)
    message = refused(tmp_path)
    assert (
        expected_message("sdk.archives.archive_files:files-hold-records-of-no-known-tool")
        in message
    )
    assert (
        expected_message("sdk.archives.archive_files:give-one-of-them-with-hallujudge-score")
        in message
    )


@pytest.mark.parametrize("content", [b'{"question_id": ', LINE.encode() * 2 + b"{"])
def test_errors_name_standard_input(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert refused("-").startswith("standard input line ")


def test_white_space_is_not_called_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(" \n" * 50)
    assert expected_message("sdk.archives.json_files:the-file-is-empty-or-holds-white") in refused(
        tmp_path / "a.jsonl"
    )


def test_a_run_beside_tables_is_told_to_be_a_run(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text(json.dumps({"id": 1, "score": 2}) + "\n")
    manifest = dict.fromkeys(("format", "release", "signature", "inputs", "settings", "run"), 1)
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    said = refused(tmp_path)
    assert (
        expected_message(
            "sdk.archives.layouts.benchmarks:manifest-json-is-manifest-json-that-hallujudge"
        )
        in said
    )
    assert "known tool" not in said


BY_COLUMNS: dict[str, dict[str, object]] = {
    "question_id": {"0": 1, "1": 2},
    "response": {"0": "Yes", "1": "No"},
    "label": {"0": "yes", "1": "no"},
}


BY_LISTS: dict[str, object] = {
    "question_id": [1, 2],
    "response": ["Yes", "No"],
    "label": ["yes", "no"],
}
SPLIT: dict[str, object] = {
    "columns": ["question_id", "response", "label"],
    "index": [0, 1],
    "data": [[1, "Yes", "yes"], [2, "No", "no"]],
}


@pytest.mark.parametrize("table", [BY_COLUMNS, BY_LISTS, SPLIT])
def test_tables_by_columns(tmp_path: Path, table: dict[str, object]) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(table))
    assert refused(path).startswith(
        expected_message("sdk.archives.records:line-table-by-columns-as-pandas-writes", path)
    )
    in_memory = {key: dict(enumerate(cells.values())) for key, cells in BY_COLUMNS.items()}
    with pytest.raises(
        ArchiveError, match=expected_message("sdk.archives.records:the-mapping-table-by-columns")
    ):
        list(read_items("pope", in_memory, None))


SIDE_FILES = {
    "mmhal": "reviews",
    "vidhal-mcqa": "options",
    "vidhalluc-sth": "similarities",
    "amber": "references",
}
OTHER_FORMATS = {
    "zip": (b"PK\x03\x04" + bytes(60), "a zip file"),
    "UTF-16": ('[{"id": 1}]\n'.encode("utf-16-le"), "UTF-16 text without a byte order mark"),
    "UTF-16, big": ('[{"id": 1}]\n'.encode("utf-16-be"), "UTF-16 text without a byte order mark"),
    "UTF-32": ("[]".encode("utf-32"), "UTF-32 text"),
    "image": (b"\x89PNG\r\n\x1a\n" + bytes(60), "an image (PNG)"),
    "Parquet": (b"PAR1" + bytes(60) + b"PAR1", "Parquet file"),
}


@pytest.mark.parametrize("metric", SIDE_FILES)
@pytest.mark.parametrize("kind", OTHER_FORMATS)
def test_a_side_file_of_another_format_is_named(tmp_path: Path, metric: str, kind: str) -> None:
    data, said = OTHER_FORMATS[kind]
    path = tmp_path / "side.json"
    path.write_bytes(data)
    shown = [{"video": "v", "captions": {"1": "a", "2": "b", "3": "c"}}]
    truth: dict[str, object] = {"v": {"Scene change": "no", "Locations": "None"}}
    known: dict[str, Any] = {"vidhal-mcqa": shown, "vidhalluc-sth": truth, "amber": path}
    name = SIDE_FILES[metric]
    options = InputOptions(own={} if name == "references" else {name: path})
    with pytest.raises(ArchiveError) as caught:
        read_items(metric, {"v": "No."}, known.get(metric), options=options)
    assert str(caught.value).startswith(f"{path}: ")
    assert said in str(caught.value)
