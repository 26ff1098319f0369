"""AVHBench: every figure by task for drawn answers, in both namings of the tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.running import here

# File -> its role, metric and number of records.
RECOGNISED = {
    "avhbench/drawn_2.json": ("responses", "avhbench", 345),
}


SCORES = ("accuracy", "precision", "recall", "f1", "yes_ratio")


@pytest.mark.parametrize("draw", ["drawn_1", "drawn_2"])
@pytest.mark.parametrize("remote", [False, True], ids=["here", "remote"])
def test_scores_by_task_are_those_of_our_formula(
    goldens: Path, tmp_path: Path, request: pytest.FixtureRequest, draw: str, *, remote: bool
) -> None:
    server = ("--server", request.getfixturevalue("server")) if remote else ()
    run = here(
        "score", "avhbench", "-r", goldens / f"avhbench/{draw}.json", "-o", tmp_path, *server
    )
    assert run.returncode == 0, run.stderr
    report: Any = json.loads((tmp_path / "report.json").read_text())
    known = json.loads((goldens / "avhbench/expected.json").read_text())[draw]
    wanted, groups = known["scores"]["by_task"], report["groups"]["task"]
    assert groups.keys() == wanted.keys()
    for task, scores in wanted.items():
        found = {name: groups[task][name]["value"] for name in (*SCORES, "unparsed_rate")}
        rate = scores["unread"] / scores["questions"]
        assert found == pytest.approx(
            {**{name: scores[name] for name in SCORES}, "unparsed_rate": rate}, abs=1e-9
        ), task
        assert groups[task]["accuracy"]["n"] == scores["questions"]
    left_out = known["records"] - sum(scores["questions"] for scores in wanted.values())
    assert (tmp_path / "items.jsonl").read_text().count('"scores":{}') == left_out
    said = " ".join(run.stdout.split())
    assert "AV Captioning has no closed score" in said
    assert ("AV Hallucination (Video) is read as" in said) is (draw == "drawn_2")
