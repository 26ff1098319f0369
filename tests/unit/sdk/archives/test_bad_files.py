"""Hostile and broken files: each is refused with one sentence that names it."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook
from support.archive_samples import QUESTION_LAYOUTS, QUESTIONS, write_lines
from support.messages import expected_message
from support.refused_archives import refused

from hallujudge.sdk import InputOptions
from hallujudge.sdk.archives import read_items, workbooks
from hallujudge.sdk.errors import ArchiveError

ROW = {"question_id": 1, "response": "Yes", "label": "yes"}
LINE = json.dumps(ROW) + "\n"


JUNK = {
    "junk.json": (b"\x93\xf2\x81" * 50, "not UTF-8 text"),
    "data.feather": (b"ARROW1\0\0" * 50, "it as Parquet: load_from_disk(FOLDER)"),
    "data.arrow": (b"\xff\xff\xff\xff\0\1" * 50, "an Arrow file, as save_to_disk"),
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


@pytest.mark.parametrize("at", [16, 24], ids=["checksum", "size"])
def test_a_log_packed_with_zstd_whose_directory_says_something_else(
    tmp_path: Path, at: int
) -> None:
    path = QUESTION_LAYOUTS["Inspect AI eval zstd"](tmp_path, QUESTIONS)
    data = bytearray(path.read_bytes())
    # An entry of the directory is 46 bytes and the name; APPNOTE.TXT of PKWARE, 4.3.12.
    data[data.rindex(b"samples/") - 46 + at] ^= 1
    path.write_bytes(data)
    said = refused(path)
    assert f"{QUESTIONS[-1].id}_epoch_1.json has another size or checksum" in said
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


def test_a_workbook_in_place_of_json_is_called_a_workbook(tmp_path: Path) -> None:
    path = tmp_path / "ids.xlsx"
    Workbook().save(path)
    captions = [{"image_id": 1, "caption": "A dog."}]
    with pytest.raises(ArchiveError, match=r"ids\.xlsx: an XLSX workbook; save it as JSON"):
        list(
            read_items(
                "chair", captions, {"1": ["dog"]}, options=InputOptions(own={"id_map": path})
            )
        )


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
