"""HallusionBench on all its questions: every number of the released script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from oracles import hallusion_bench as oracle
from support.messages import expected_message
from support.running import here

# Score -> the expected file's name of its number of cases.
COUNTS = {
    "question_accuracy": "questions",
    "pair_accuracy": "pairs",
    "figure_accuracy": "figures",
    "pair_mixed": "pairs_wrong",
}
ACCURACIES = (
    "question_accuracy",
    "pair_accuracy",
    "easy_pair_accuracy",
    "hard_pair_accuracy",
    "figure_accuracy",
    "figure_inconsistent",
    "figure_wrong",
    "figure_score",
)
# Score -> the expected file's name of its numerator.
CAUSES = {
    **{f"question_{cause}": f"question_{cause}" for cause in oracle.CAUSES},
    **{cause: f"pair_{cause}_count" for cause in oracle.CAUSES},
    **{f"pair_{cause}": f"pair_{cause}" for cause in oracle.CAUSES},
}


def scored(out: Path, *arguments: str | Path) -> Any:
    run = here("score", "hallusion-bench", *arguments, "--out", out)
    assert run.returncode in {0, 3}, run.stderr
    return json.loads((out / "report.json").read_text())


@pytest.fixture(scope="module")
def report(goldens: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    drawn = goldens / "hallusion_bench" / "drawn_1.predictions.json"
    key = ("--map", "correctness=correctness", "--correctness", "given")
    return scored(tmp_path_factory.mktemp("drawn"), "--responses", drawn, *key)


@pytest.mark.parametrize("part", ["all", "VD", "VS"])
def test_the_leaderboards_mean_is_of_three_accuracies(
    goldens: Path, report: Any, part: str
) -> None:
    file = goldens / "hallusion_bench" / "expected_scores.json"
    expected = json.loads(file.read_text())["drawn_1"][part]
    scores = report["scores"] if part == "all" else report["groups"]["category"][part]
    names = ("question_accuracy", "figure_accuracy", "pair_accuracy")
    mean = sum(expected[name] for name in names) / len(names)
    assert scores["mean_accuracy"]["value"] == pytest.approx(mean, abs=1e-9)


@pytest.mark.parametrize("part", ["all", "VD", "VS"])
def test_every_number_of_the_released_script(goldens: Path, report: Any, part: str) -> None:
    file = goldens / "hallusion_bench" / "expected_scores.json"
    expected = json.loads(file.read_text())["drawn_1"][part]
    scores = report["scores"] if part == "all" else report["groups"]["category"][part]
    got = {name: scores[name]["value"] for name in ACCURACIES}
    got |= {key: scores[name]["n"] for name, key in COUNTS.items()}
    got |= {key: scores[name]["value"] * scores[name]["n"] for name, key in CAUSES.items()}
    assert got == pytest.approx(expected, abs=1e-9)


def test_how_often_yes_is_said(goldens: Path, report: Any) -> None:
    file = goldens / "hallusion_bench" / "expected_scores.json"
    expected = json.loads(file.read_text())["drawn_1"]["yes_no"]
    scores = report["scores"]
    assert scores["yes_percent_difference"]["value"] == pytest.approx(expected["diff"], abs=1e-9)
    assert scores["false_positive_ratio"]["value"] == pytest.approx(expected["fp"], abs=1e-9)


def test_images_only_are_vlmevalkits_951_rows(goldens: Path, tmp_path: Path) -> None:
    drawn = goldens / "hallusion_bench" / "drawn_1.predictions.json"
    rows = [
        {
            **row,
            "visual_input": int(row["visual_input"]),
            "correctness": int(row["correctness"]),
        }
        for row in json.loads(drawn.read_text())
    ]
    given = ("--responses", drawn, "--variant", "image-only", "--correctness", "given")
    report = scored(tmp_path, *given)
    for name, value in oracle.kit_table(rows).items():
        assert report["scores"][name]["value"] == pytest.approx(value, abs=1e-12)
    assert report["scores"]["question_accuracy"]["n"] == 951
    assert report["coverage"]["items"] == 951
    assert any("image-only" in note for note in report["notes"])


def test_released_answers_have_no_label_and_join_the_questions(
    goldens: Path, tmp_path: Path
) -> None:
    folder = goldens / "hallusion_bench"
    sample = ("--responses", folder / "released_sample.predictions.json")
    alone = here("score", "hallusion-bench", *sample, "--out", tmp_path / "alone")
    assert alone.returncode == 2
    assert (
        expected_message("sdk.archives.hallusion_bench:neither-gt-answer-nor-correctness")
        in alone.stderr
    )
    assert "254 in all" in alone.stderr
    questions = ("--references", folder / "drawn_1.predictions.json", "--allow-missing")
    report = scored(tmp_path / "joined", *sample, *questions)
    assert report["coverage"]["scored"] == 254
    assert report["coverage"]["reasons"] == {"RESPONSE_MISSING": 875}
