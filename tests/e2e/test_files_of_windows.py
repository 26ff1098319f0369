"""Archives as Windows writes them, with CRLF, a byte-order mark and backslashes, score the same."""

from __future__ import annotations

import gzip
import io
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.running import assert_refused, here, read_rows

from hallujudge.sdk import example_archives, write_example

IMAGE = "COCO_val2014_000000000042.jpg"
RESPONSES = ("captions.jsonl", "answers.jsonl", "answers.json")


def scores(folder: Path, metric: str) -> Any:
    done = here(*shlex.split(example_archives()[metric].command)[1:], cwd=folder)
    assert done.returncode in (0, 3), done.stderr
    report = json.loads((folder / "results" / "report.json").read_text())
    return report["scores"], report["coverage"], report["item_set"], report["references"]


@pytest.mark.parametrize("metric", example_archives())
def test_line_ends_and_marks_change_no_score(metric: str, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("unix", "windows")]
    for folder in folders:
        write_example(metric, folder)
    for path in filter(Path.is_file, folders[1].rglob("*")):
        text = path.read_text(encoding="utf-8").replace("\n", "\r\n")
        path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert scores(folders[0], metric) == scores(folders[1], metric)


def test_images_with_paths_of_windows_join_like_their_names(tmp_path: Path) -> None:
    """Answers name the image as they found it; questions by its name alone."""
    found = []
    for name in (IMAGE, f"val2014/{IMAGE}", f"C:\\data\\val2014\\{IMAGE}"):
        answers = tmp_path / "answers.jsonl"
        row = {"question_id": 1, "image": name, "text": "Yes."}
        answers.write_text(json.dumps(row) + "\n")
        question = {"question_id": 1, "image": IMAGE, "text": "Is there a dog?", "label": "no"}
        (tmp_path / "questions.jsonl").write_text(json.dumps(question) + "\n")
        done = here(
            *("score", "pope", "-r", answers, "-R", tmp_path / "questions.jsonl"),
            *("-o", tmp_path / "out", "--overwrite"),
        )
        assert done.returncode == 0, done.stderr
        report = json.loads((tmp_path / "out" / "report.json").read_text())
        found.append((report["item_set"], report["scores"]["accuracy"]["value"]))
    assert found == [found[0]] * 3


def packed(content: bytes, name: str) -> bytes:
    stored = io.BytesIO()
    with gzip.GzipFile(name, "wb", fileobj=stored) as file:
        file.write(content)
    return stored.getvalue()


@pytest.mark.parametrize("form", ["utf-16", "gzip", "array"])
@pytest.mark.parametrize("metric", ["chair", "pope", "mmhal"])
def test_other_forms_of_responses_change_no_score(metric: str, form: str, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("unix", "windows")]
    for folder in folders:
        write_example(metric, folder)
    [responses] = [folders[1] / name for name in RESPONSES if (folders[1] / name).is_file()]
    text = responses.read_text(encoding="utf-8")
    rows = read_rows(responses) if responses.suffix == ".jsonl" else json.loads(text)
    changed = {
        "utf-16": text.encode("utf-16"),
        "gzip": packed(text.encode(), responses.name),
        "array": json.dumps(rows, indent=1).encode(),
    }
    responses.write_bytes(changed[form])
    assert scores(folders[0], metric) == scores(folders[1], metric)


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_line_that_is_not_utf_8_is_named(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    row = {"image_id": 1, "caption": "A café. " + 200 * "A dog. "}
    lines = [json.dumps({**row, "image_id": n}, ensure_ascii=False) for n in range(900)]
    # Whatever is read at a time, the bad line is none of the first.
    content = "\n".join(lines[:800]).encode() + b"\n" + lines[800].encode("latin-1") + b"\n"
    responses = tmp_path / "captions.jsonl"
    responses.write_bytes(pack(content))
    (tmp_path / "objects.json").write_text('{"1": ["dog"]}', encoding="utf-8")
    refused = here(
        "score", "chair", "-r", responses, "-R", tmp_path / "objects.json", "-o", tmp_path / "out"
    )
    assert_refused(refused, f"{responses} line 801: not UTF-8 text")
