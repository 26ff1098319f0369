"""DASH-B: every number of the released script, for its own answers and for drawn ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.running import here

# File -> its role, metric and number of records.
RECOGNISED = {
    "dash_b/Paligemma-3b_answers.json": ("responses", "dash-b", 2682),
    "dash_b/dash_benchmark_pos.json": ("references", "dash-b", 7),
}


RUNS = {"Paligemma-3b": "Paligemma-3b_answers.json", "drawn_1": "drawn_1_answers.json"}
SCORES = ("accuracy", "true_positive_rate", "true_negative_rate", "harmonic_mean")


def scored(folder: Path, out: Path, file: str, *more: str) -> tuple[Any, str]:
    run = here(
        *("score", "dash-b", "-r", folder / file, "--out", out, "--count-empty"),
        *more,
        *("-R", folder / "dash_benchmark_neg.json", "-R", folder / "dash_benchmark_pos.json"),
    )
    assert run.returncode == 0, run.stderr
    return json.loads((out / "report.json").read_text()), run.stderr


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("remote", [False, True], ids=["here", "remote"])
def test_scores_are_those_of_the_released_script(
    goldens: Path, tmp_path: Path, request: pytest.FixtureRequest, name: str, *, remote: bool
) -> None:
    folder = goldens / "dash_b"
    server = ("--server", request.getfixturevalue("server")) if remote else ()
    report, notes = scored(folder, tmp_path, RUNS[name], *server)
    wanted = json.loads((folder / "expected.json").read_text())[name]
    for score in SCORES:
        assert report["scores"][score]["value"] == pytest.approx(wanted[score], abs=1e-12)
    assert (report["coverage"]["items"], report["totals"]["unparsed"]) == (
        wanted["answers"],
        wanted["unparsed"],
    )
    missing = wanted.get("not_in_image_lists")
    assert (f"{missing:,} of 2,682 answers" in notes) if missing else "the lists" not in notes


def test_released_scores_are_in_the_results_of_the_authors(goldens: Path, tmp_path: Path) -> None:
    released = json.loads((goldens / "dash_b" / "Paligemma-3b_dash_b_results.json").read_text())
    report, _ = scored(goldens / "dash_b", tmp_path, RUNS["Paligemma-3b"])
    ours = [report["scores"][score]["value"] for score in SCORES]
    assert ours == [released[key] for key in ("ACC", "TPR", "TNR", "Harmonic Mean")]


def test_objects_are_groups(goldens: Path, tmp_path: Path) -> None:
    report, _ = scored(goldens / "dash_b", tmp_path, RUNS["drawn_1"])
    rows = json.loads((goldens / "dash_b" / RUNS["drawn_1"]).read_text())
    groups = report["groups"]["object"]
    assert groups.keys() == {row["object_name"] for row in rows}
    assert sum(scores["accuracy"]["n"] for scores in groups.values()) == len(rows)
