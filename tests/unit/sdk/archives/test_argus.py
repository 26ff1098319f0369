"""Judged captions for ARGUS: folders of clips, records, and what is wrong with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hallujudge.metrics.argus import ArgusItem
from hallujudge.sdk import Client, InputOptions
from hallujudge.sdk.archives import read_items
from hallujudge.sdk.archives.inspection import inspect_archives
from hallujudge.sdk.errors import ArchiveError

LINE = [1, "He sings a song.", "", "dynamic-action", "why", "contradiction"]


def result(**more: Any) -> dict[str, Any]:
    return {
        "analysis_mode": "hallucination",
        "human_caption": "A man opens a box.",
        "model_caption": "He sings a song.",
        "result_raw": "",
        "result_tuple": [LINE],
        **more,
    }


def write(folder: Path, clip: str, model: str, *, human: bool = False, **more: Any) -> Path:
    names = (f"REF_{model}", "TAR_human") if human else ("REF_human", f"TAR_{model}")
    file = folder / clip / names[0] / f"{names[1]}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(result(**more)))
    return file


def items_of(given: Any, **own: Any) -> list[ArgusItem]:
    found = list(read_items("argus", given, None, options=InputOptions(own=own)))
    assert all(isinstance(item, ArgusItem) for item in found)
    return found  # type: ignore[return-value]  # checked


def test_a_folder_has_two_captions_for_each_clip_also_where_a_file_is_missing(
    tmp_path: Path,
) -> None:
    write(tmp_path, "b.1", "m")
    write(tmp_path, "a", "m")
    write(tmp_path, "a", "m", human=True)
    items = items_of(tmp_path)
    assert [item.id for item in items] == [
        "a/hallucination", "a/omission", "b.1/hallucination", "b.1/omission",
    ]  # fmt: skip
    assert (items[0].source, items[0].response) == ("A man opens a box.", "He sings a song.")
    assert (items[1].source, items[1].response) == ("He sings a song.", "A man opens a box.")
    assert items[3].response is None
    assert "b.1/REF_m/TAR_human.json" in items[3].problem
    assert {item.group_id for item in items} == {"a", "b.1"}


def test_one_of_several_models_must_be_named(tmp_path: Path) -> None:
    for model in ("one", "two"):
        write(tmp_path, "a", model)
    with pytest.raises(ArchiveError, match=r"several models.*one, two"):
        items_of(tmp_path)
    with pytest.raises(ArchiveError, match=r"'three'.*one, two"):
        items_of(tmp_path, model="three")
    assert len(items_of(tmp_path, model="two")) == 2


def test_a_single_file_has_its_clip_from_its_folders(tmp_path: Path) -> None:
    [item] = items_of(write(tmp_path, "a", "m"))
    assert item.id == "a/hallucination"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([LINE[:5]], "6 parts"),
        ([[1, None, "", "", "", ""]], "texts"),
        ([[1, "x", None, "", "", ""]], "texts"),
        ("none", "not a list"),
    ],
    ids=["five parts", "no text", "no evidence", "a text"],
)
def test_lines_of_another_form_leave_the_caption_unscored(lines: Any, said: str) -> None:
    records = [{"clip": "1", **result(result_tuple=lines)}, {"clip": "2", **result()}]
    assert said in items_of(records)[0].problem
    with Client.embedded() as client:
        report = client.score("argus", responses=records)
    assert report.coverage.reasons == {"CLAIMS_INVALID": 1}
    assert report.scores["cost_h"].value == 1


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"clip": "1", **result(analysis_mode="both")}, "hallucination or omission"),
        ({"clip": "1", **result(human_caption=["A man."])}, "human_caption"),
    ],
    ids=["mode", "caption"],
)
def test_records_that_cannot_be_read_are_refused(record: dict[str, Any], said: str) -> None:
    with pytest.raises(ArchiveError, match=said):
        items_of([record])


def test_duplicates_are_refused() -> None:
    with pytest.raises(ArchiveError, match="1/hallucination"):
        items_of([{"clip": "1", **result()}] * 2)


def test_tables_hold_lines_as_text() -> None:
    record = {"clip": "1", **result(), "result_tuple": json.dumps([LINE])}
    assert items_of([record])[0].lines[0].text == "He sings a song."


def test_files_are_recognised(tmp_path: Path) -> None:
    [summary] = inspect_archives([write(tmp_path, "a", "m")])
    assert (summary.metrics, summary.layout) == (("argus",), "ARGUS' judged caption of a clip")
    assert summary.command.startswith("hallujudge score argus --responses")


def test_given_verdicts_need_no_target_caption_but_a_source() -> None:
    records = [
        {"clip": "1", **result(model_caption=None)},
        {"clip": "2", **result(human_caption=None)},
        {"clip": "3", **result(model_caption=None, result_tuple=[])},
    ]
    with Client.embedded() as client:
        report = client.score("argus", responses=records)
    assert report.scores["cost_h"].value == 1
    assert report.coverage.reasons == {"REFERENCE_MISSING": 1, "RESPONSE_MISSING": 1}
