"""Differences of scores that human labels correct."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.comparison_runs import chair_run
from support.running import here, read_rows

from hallujudge.sdk.calibration import calibrate, write_calibration
from hallujudge.sdk.comparison import compare


def calibrated_run(folder: Path, wrong: float, seed: int) -> None:
    """Score captions and label them all as the verdicts have it, but for every fourth image."""
    chair_run(folder, wrong, seed=seed, images=80)
    lines = []
    for row in read_rows(folder / "items.jsonl"):
        spans = row["evidence"]["hallucinated_spans"]
        for index, span in enumerate(row["evidence"]["mentioned_spans"]):
            truth = span in spans and int(row["id"]) % 4 != 0
            label = "not_supported" if truth else "supported"
            lines.append({"item": row["id"], "claim": index, "label": label})
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (folder / "labels.jsonl").write_text(text, encoding="utf-8")
    write_calibration(folder, calibrate(folder))


def test_corrected_differences_stand_beside_raw_ones(tmp_path: Path) -> None:
    for name, wrong, seed in (("one", 0.9, 1), ("two", 0.1, 2)):
        calibrated_run(tmp_path / name, wrong, seed)
    found = compare(tmp_path / "one", tmp_path / "two")
    for run in found.runs:
        assert re.search(r"\|calibrated:ppi\+\+/n=\d+/labels@[0-9a-f]{8}$", run.signature)
    [pair] = found.pairs
    assert [each.score for each in pair.corrected] == ["chair_i", "chair_s"]
    for each in pair.corrected:
        raw = pair[each.score]
        assert each.difference == pytest.approx(each.second - each.first)
        assert raw.difference is not None
        # Labels take a quarter of the hallucinations of both runs away.
        assert abs(each.difference) < abs(raw.difference)
        assert each.ci_low < each.difference < each.ci_high < 0
        assert each.finding == "better"
    shown = here("compare", tmp_path / "one", tmp_path / "two", "--format", "markdown").stdout
    assert "Corrected by human labels: two against one" in shown


def test_a_run_against_itself_differs_by_nothing(tmp_path: Path) -> None:
    for name in ("one", "two"):
        calibrated_run(tmp_path / name, 0.5, 1)
    [pair] = compare(tmp_path / "one", tmp_path / "two").pairs
    for each in pair.corrected:
        assert each.difference == 0
        # The errors are the same, so that what is left of the interval is its skewness.
        assert -0.02 < each.ci_low <= 0 <= each.ci_high < 0.02
        assert each.finding == "none"


def test_both_runs_must_be_calibrated(tmp_path: Path) -> None:
    calibrated_run(tmp_path / "one", 0.5, 1)
    chair_run(tmp_path / "two", 0.5, seed=2, images=80)
    found = compare(tmp_path / "one", tmp_path / "two")
    assert found.pairs[0].corrected == ()
    assert not any("calibrated:" in run.signature for run in found.runs)
