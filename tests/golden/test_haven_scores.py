"""HAVEN: every figure of the sums over the released judge's grades of drawn answers."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from support.running import here

# File -> its role, metric and number of records.
RECOGNISED = {
    "haven/drawn_1_eval_result.json": ("responses", "haven", 260),
}


DRAWS = ("drawn_1", "drawn_2")
GROUPED = ("groups_of_several_all_right", "groups_of_several_with_one_verdict")
EXACT = 1e-9


def report_of(file: Path, out: Path, *more: str) -> Any:
    run = here("score", "haven", "-r", file, "-o", out, *more)
    assert run.returncode in (0, 3), run.stderr
    return json.loads((out / "report.json").read_text())


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("remote", [False, True], ids=["here", "remote"])
def test_scores_are_those_of_our_sums(
    goldens: Path, tmp_path: Path, request: pytest.FixtureRequest, draw: str, *, remote: bool
) -> None:
    server = ("--server", request.getfixturevalue("server")) if remote else ()
    report = report_of(goldens / f"haven/{draw}_eval_result.json", tmp_path, *server)
    known = json.loads((goldens / "haven/expected.json").read_text())[draw]
    wanted = known["scores"]
    found = {name: report["scores"][name]["value"] for name in ("accuracy", *GROUPED)}
    assert found == pytest.approx({name: wanted[name] for name in found}, abs=EXACT)
    assert report["coverage"] == report["coverage"] | {"items": known["items"], "unscored": 0}
    for field in ("cause", "aspect", "form"):
        groups = report["groups"][field]
        values = {name: group["accuracy"]["value"] for name, group in groups.items()}
        assert values == pytest.approx(wanted[f"by_{field}"], abs=EXACT), field


@pytest.mark.parametrize("draw", DRAWS)
def test_corrected_gives_the_figures_of_a_plain_loop(
    goldens: Path, tmp_path: Path, draw: str
) -> None:
    file = goldens / f"haven/{draw}_eval_result.json"
    report = report_of(file, tmp_path, "--variant", "corrected")
    meant = {"1": 1, "0": 0, "Correct": 1, "Incorrect": 0, "The prediction is incorrect: 0": 0}
    meant |= {"1.": 1, "0.": 0, "The prediction is correct: 1": 1}
    items = json.loads(file.read_text())
    grades = [(row["Group_id"], meant.get(row["Correctness"])) for row in items]
    by_group = defaultdict(list)
    for group, grade in grades:
        if grade is not None:
            by_group[group].append(grade)
    known = [grade for _, grade in grades if grade is not None]
    several = [held for held in by_group.values() if len(held) > 1]
    assert report["coverage"]["unscored"] == len(items) - len(known)
    wanted = {
        "accuracy": sum(known) / len(known),
        GROUPED[0]: sum(map(all, several)) / len(several),
        GROUPED[1]: sum(len(set(held)) == 1 for held in several) / len(several),
    }
    found = {name: report["scores"][name]["value"] for name in wanted}
    assert found == pytest.approx(wanted, abs=EXACT)
    assert report["scores"][GROUPED[0]]["n"] == len(several)
