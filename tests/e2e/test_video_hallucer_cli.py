"""VideoHallucer on the command line: layouts, readings and bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.pages import Page
from support.qa_running import assert_refused, report_of, values_of
from support.running import here


def pair(basic: str | None = "Yes.", hallucination: str | None = "No.", **more: Any) -> Any:
    return {
        "basic": {"video": "1_b.mp4", "question": "A dog?", "answer": "yes", "predict": basic},
        "hallucination": {"video": "1_a.mp4", "answer": "no", "predict": hallucination},
    } | more


def score(folder: Path, content: Any, *more: str, name: str = "temporal.json") -> Any:
    path = folder / name
    path.write_text(json.dumps(content))
    out = ("--out", folder / "out", "--overwrite")
    return here("score", "video-hallucer", "--responses", path, *out, *more)


def test_published_finds_the_label_anywhere_and_corrected_reads_the_answer(tmp_path: Path) -> None:
    rows = [pair(), pair("No. Yes, another one.", "Yes, no doubt"), pair("Yesterday", "nothing")]
    assert score(tmp_path, rows).returncode == 0
    values = values_of(tmp_path / "out")
    assert values["pair_accuracy"] == pytest.approx(2 / 3)
    assert values["mean_pair_accuracy"] is None
    assert score(tmp_path, rows, "--variant", "corrected").returncode == 3
    values = values_of(tmp_path / "out")
    assert values["pair_accuracy"] == 1
    assert values["unparsed_rate"] == pytest.approx(2 / 3)
    report = report_of(tmp_path / "out")
    assert report["coverage"]["reasons"] == {"ANSWER_UNPARSED": 2}
    assert report["coverage"]["bounds"]["pair_accuracy"]["worst"] == pytest.approx(1 / 3)


def test_labels_may_end_in_a_full_stop_and_pairs_may_have_ids(tmp_path: Path) -> None:
    written = pair()
    written["basic"]["answer"], written["hallucination"]["answer"] = "Yes.", "NO."
    assert score(tmp_path, {"temporal": {"a": written}}, name="all.json").returncode == 0
    assert values_of(tmp_path / "out")["pair_accuracy"] == 1


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("obj_rel_LLaVA.json", "object_relation"),
        ("fact_detect.json", "fact_detect"),
        ("factdet_LLaVA.json", "fact_detect"),
        ("fact_LLaVA.json", "external_factual"),
        ("nonfact_LLaVA.json", "external_nonfactual"),
        ("semantic_detail.json", "semantic_detail"),
    ],
)
def test_sets_are_found_by_the_name_of_the_file(tmp_path: Path, name: str, found: str) -> None:
    assert score(tmp_path, [pair()], name=name).returncode == 0
    assert list(report_of(tmp_path / "out")["groups"]["set"]) == [found]


def test_one_file_may_hold_all_sets(tmp_path: Path) -> None:
    both = {"temporal": [pair()], "interaction": [pair("No.")]}
    assert score(tmp_path, both, name="all.json").returncode == 0
    assert set(report_of(tmp_path / "out")["groups"]["set"]) == {"interaction", "temporal"}
    rows = [pair(set="temporal"), pair(set="interaction")]
    assert score(tmp_path, rows, name="all.json").returncode == 0
    assert set(report_of(tmp_path / "out")["groups"]["set"]) == {"interaction", "temporal"}


def test_videos_are_the_clusters(tmp_path: Path) -> None:
    turned = pair()
    turned["basic"]["video"], turned["hallucination"]["video"] = "1_a.mp4", "1_b.mp4"
    assert score(tmp_path, [pair(), turned]).returncode == 0
    lines = (tmp_path / "out" / "items.jsonl").read_text().splitlines()
    assert {json.loads(line)["group_id"] for line in lines} == {"1_a.mp4"}


def test_a_missing_answer_is_unscored(tmp_path: Path) -> None:
    assert score(tmp_path, [pair(), pair(hallucination=None)]).returncode == 3
    report = report_of(tmp_path / "out")
    assert report["coverage"]["reasons"] == {"RESPONSE_MISSING": 1}
    assert report["scores"]["unparsed_rate"]["value"] == 0


BROKEN = pair()
BROKEN["basic"]["answer"] = "maybe"
SILENT = {"basic": {"answer": "yes"}, "hallucination": {"answer": "no"}}


@pytest.mark.parametrize(
    ("content", "name", "said"),
    [
        ([pair()], "mine.json", ("have no set", "object_relation")),
        (
            [pair(), {"basic": pair()["basic"]}],
            "temporal.json",
            ("line 1, record 1: no hallucination", "pair_id"),
        ),
        ([BROKEN], "temporal.json", ("temporal/0", "maybe", "neither yes nor no")),
        ({"other": [pair()]}, "all.json", ("other", "not a set")),
        ([SILENT], "temporal.json", ("temporal.json line 1", "--text-key")),
        ([3], "temporal.json", ("line 1: expected a record, an object; found 3",)),
    ],
)
def test_bad_input_is_named(tmp_path: Path, content: Any, name: str, said: tuple[str, ...]) -> None:
    assert_refused(score(tmp_path, content, name=name), *said)


def test_a_folder_holds_one_file_for_each_set(tmp_path: Path) -> None:
    folder = tmp_path / "answers"
    folder.mkdir()
    given = ("score", "video-hallucer", "--responses", folder, "--out", tmp_path / "out")
    assert_refused(here(*given), "no file that could be an archive")
    for name in ("obj_rel_A.json", "obj_rel_B.json"):
        (folder / name).write_text(json.dumps([pair()]))
    assert_refused(here(*given), "obj_rel_A.json", "obj_rel_B.json", "object_relation")
    (folder / "obj_rel_B.json").rename(folder / "notes.json")
    assert_refused(here(*given), "notes.json", "must begin with one of the sets")


def test_the_page_shows_which_answer_is_wrong(tmp_path: Path) -> None:
    assert score(tmp_path, [pair(), pair("No.")], "--format", "html").returncode == 0
    page = Page((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    assert "basic wrong, hallucination right" in page.summaries()
