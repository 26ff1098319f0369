"""Copies of records, such as those that pad the last batch of several GPUs, are left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.messages import expected_message

from hallujudge.sdk.archives import InputOptions, read_items
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
