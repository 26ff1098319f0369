"""VideoHallucer on all its sets: every number of the released script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from oracles import video_hallucer as oracle
from support.running import here

SCORES = {
    "basic_accuracy": "basic_accuracy",
    "halluc_accuracy": "hallucination_accuracy",
    "accuracy": "pair_accuracy",
}


@pytest.fixture(scope="module")
def report(goldens: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    out = tmp_path_factory.mktemp("drawn")
    drawn = goldens / "video_hallucer" / "drawn_1"
    run = here("score", "video-hallucer", "--responses", drawn, "--out", out)
    assert run.returncode == 0, run.stderr
    return json.loads((out / "report.json").read_text())


def test_every_set_of_the_released_script(goldens: Path, report: Any) -> None:
    file = goldens / "video_hallucer" / "expected_scores.json"
    expected = json.loads(file.read_text())["drawn_1"]
    sets = report["groups"]["set"]
    assert sets.keys() == expected.keys()
    for name, wanted in expected.items():
        got = {key: sets[name][score]["value"] for key, score in SCORES.items()}
        assert got == pytest.approx(wanted, abs=1e-12), name


def test_means_are_over_the_papers_five_sets(goldens: Path, report: Any) -> None:
    file = goldens / "video_hallucer" / "expected_scores.json"
    expected = json.loads(file.read_text())["drawn_1"]
    for key, score in SCORES.items():
        mean = sum(expected[name][key] for name in oracle.PAPER_SETS) / len(oracle.PAPER_SETS)
        assert report["scores"][f"mean_{score}"]["value"] == pytest.approx(mean, abs=1e-12)


def test_the_yes_bias_is_that_of_all_answers(goldens: Path, report: Any) -> None:
    drawn = goldens / "video_hallucer" / "drawn_1"
    pairs = [pair for file in drawn.glob("*.json") for pair in json.loads(file.read_text())]
    wanted = oracle.scores(pairs)
    for name in ("yes_percent_difference", "false_positive_ratio"):
        assert report["scores"][name]["value"] == pytest.approx(wanted[name], abs=1e-12)
