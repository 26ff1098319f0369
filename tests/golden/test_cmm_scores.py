"""CMM: every number of the released script for drawn answers, and what its surprises change."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.running import here

# File -> its role, metric and number of records.
RECOGNISED = {
    "cmm/drawn_1.output.json": ("responses", "cmm", 336),
}


DRAWS = ("drawn_1", "drawn_2")
SCORES = ("accuracy", "perception_accuracy", "hallucination_resistance")
EXACT = 1e-9


def report_of(file: Path, out: Path, *more: str) -> Any:
    run = here("score", "cmm", "-r", file, "-o", out, *more)
    assert run.returncode == 0, run.stderr
    return json.loads((out / "report.json").read_text())


def values(scores: Any) -> dict[str, Any]:
    return {name: scores[name]["value"] for name in SCORES}


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("remote", [False, True], ids=["here", "remote"])
def test_scores_are_those_of_the_released_script(
    goldens: Path, tmp_path: Path, request: pytest.FixtureRequest, draw: str, *, remote: bool
) -> None:
    server = ("--server", request.getfixturevalue("server")) if remote else ()
    report = report_of(goldens / f"cmm/{draw}.output.json", tmp_path, *server)
    known = json.loads((goldens / "cmm/expected.json").read_text())[draw]
    wanted = known["scores"]
    assert report["scores"]["accuracy"]["n"] == known["questions"]
    assert values(report["scores"]) == pytest.approx({n: wanted[n] for n in SCORES}, abs=EXACT)
    kinds = report["groups"]["sub_category"]
    assert kinds.keys() == wanted["by_sub_category"].keys()
    crossed = {
        f"{level}/{kind}": scores
        for level, held in wanted["by_granularity"].items()
        for kind, scores in held.items()
    }
    both = report["groups"]["granularity_sub_category"]
    # Questions without a granularity are in no group of the script's third table.
    assert both.keys() - {""} == crossed.keys()
    assert both[""]["accuracy"]["n"] == known["surprises"]["questions_of_no_granularity"]
    for name, scores in {**wanted["by_sub_category"], **crossed}.items():
        found = kinds.get(name) or both[name]
        assert values(found) == pytest.approx({n: scores[n] for n in SCORES}, abs=EXACT), name
        assert found["accuracy"]["n"] == scores["questions"]


@pytest.mark.parametrize("draw", DRAWS)
def test_corrected_gives_the_figures_of_a_plain_loop(
    goldens: Path, tmp_path: Path, draw: str
) -> None:
    file = goldens / f"cmm/{draw}.output.json"
    found = report_of(file, tmp_path, "--variant", "corrected", "--count-empty")
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    right = {"yes": [0, 0], "no": [0, 0]}
    for row in rows:
        words = [word for word in re.findall(r"\w+", row["pred"].lower()) if word in right]
        right[row["answer"]][0] += words[:1] == [row["answer"]]
        right[row["answer"]][1] += 1
    (pa, asked), (hr, others) = right["yes"], right["no"]
    wanted = ((pa + hr) / len(rows), pa / asked, hr / others)
    assert tuple(values(found["scores"]).values()) == pytest.approx(wanted, abs=EXACT)
