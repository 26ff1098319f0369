"""HumbleBench: every number of the released package, in its three modes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.running import here, read_rows

# File -> its role, metric and number of records.
RECOGNISED = {
    "humblebench/drawn_1.common.jsonl": ("responses", "humblebench", 220),
}


RUNS = [(draw, mode) for draw in (1, 2) for mode in ("common", "noise_image", "nota_only")]
UNSCORED = 3


def scored(goldens: Path, out: Path, draw: int, mode: str, *more: str) -> Any:
    file = goldens / "humblebench" / f"drawn_{draw}.{mode}.jsonl"
    run = here("score", "humblebench", "-r", file, "-o", out, "--mode", mode, *more)
    assert run.returncode == UNSCORED, run.stderr
    return json.loads((out / "report.json").read_text())


def expected(goldens: Path, draw: int, mode: str) -> Any:
    text = (goldens / "humblebench" / "expected.json").read_text()
    return json.loads(text)[f"drawn_{draw}"][mode]


@pytest.mark.parametrize(("draw", "mode"), RUNS)
@pytest.mark.parametrize("remote", [False, True], ids=["here", "remote"])
def test_scores_are_those_of_the_released_package(
    goldens: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    draw: int,
    mode: str,
    *,
    remote: bool,
) -> None:
    server = ("--server", request.getfixturevalue("server")) if remote else ()
    report, wanted = scored(goldens, tmp_path, draw, mode, *server), expected(goldens, draw, mode)
    found = {name: 100 * score["value"] for name, score in report["scores"].items()}
    accuracy, proportions = wanted["scores"]["Accuracy"], wanted["scores"]["Proportions"]
    assert found.pop("accuracy") == pytest.approx(accuracy["Overall_accuracy"], abs=1e-9)
    assert found.pop("none_accuracy") == pytest.approx(accuracy["E_accuracy"], abs=1e-9)
    shares = {f"{name.split('_')[0].lower()}_share": v for name, v in proportions.items()}
    assert found == pytest.approx(shares, abs=1e-9)
    groups = report["groups"]["type"]
    by_type = {name: 100 * of["accuracy"]["value"] for name, of in groups.items()}
    for kind, value in by_type.items():
        assert value == pytest.approx(accuracy[f"{kind}_accuracy"], abs=1e-9)
    assert len(by_type) == len(accuracy) - len(("Overall", "E"))


@pytest.mark.parametrize(("draw", "mode"), RUNS)
def test_the_lines_that_the_package_drops_are_unscored(
    goldens: Path, tmp_path: Path, draw: int, mode: str
) -> None:
    report, wanted = scored(goldens, tmp_path, draw, mode), expected(goldens, draw, mode)
    dropped = [row for row in read_rows(tmp_path / "items.jsonl") if row["outcome"] == "unscored"]
    assert sorted(row["id"] for row in dropped) == sorted(wanted["refused_ids"])
    assert report["totals"]["dropped"] == wanted["refused_lines"]
    assert report["coverage"]["items"] == wanted["lines"]
    assert any("drops them: 9." in note for note in report["notes"])


def test_the_corrected_variant_counts_every_right_e(goldens: Path, tmp_path: Path) -> None:
    report = scored(goldens, tmp_path, 1, "common", "--variant", "corrected")
    published = expected(goldens, 1, "common")["scores"]["Accuracy"]
    assert report["scores"]["none_accuracy"]["value"] > 2 * published["E_accuracy"] / 100
    assert report["scores"]["accuracy"]["value"] > published["Overall_accuracy"] / 100
