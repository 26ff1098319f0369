"""Archives as Windows writes them, with CRLF, a byte-order mark and backslashes, score the same."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from support.running import here

from hallujudge.sdk import example_archives, write_example

IMAGE = "COCO_val2014_000000000042.jpg"


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
