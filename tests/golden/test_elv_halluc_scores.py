"""ELV-Halluc: every number of the released script, overall and by aspect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.running import here

SCORES = ("in_video_accuracy", "out_video_accuracy")


@pytest.mark.parametrize("remote", [False, True], ids=["here", "remote"])
def test_scores_are_those_of_the_released_script(
    goldens: Path, tmp_path: Path, request: pytest.FixtureRequest, *, remote: bool
) -> None:
    server = ("--server", request.getfixturevalue("server")) if remote else ()
    file = goldens / "elv_halluc" / "drawn_1.jsonl"
    run = here("score", "elv-halluc", "-r", file, "-o", tmp_path, "--count-empty", *server)
    assert run.returncode == 0, run.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    wanted = json.loads((goldens / "elv_halluc" / "expected.json").read_text())["drawn_1"]
    assert_percent(report["scores"], wanted, *SCORES, "sah_ratio")
    totals = report["totals"]
    assert [totals["triplets"], totals["unparsed"]] == [wanted["triplets"], wanted["unparsed"]]
    assert [totals[f"{score}_right"] for score in SCORES] == [
        wanted["in_video_correct"],
        wanted["out_video_correct"],
    ]
    groups = report["groups"]["aspect"]
    assert groups.keys() == wanted["by_aspect"].keys()
    for aspect, part in wanted["by_aspect"].items():
        assert_percent(groups[aspect], part, *SCORES)
        assert groups[aspect]["in_video_accuracy"]["n"] == part["total"]


def assert_percent(scores: Any, wanted: Any, *names: str) -> None:
    for name in names:
        assert 100 * scores[name]["value"] == pytest.approx(wanted[name], abs=1e-9), name
