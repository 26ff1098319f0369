"""ARGUS: the figures of the released scripts for drawn clips, for each clip too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.running import here, read_rows

from hallujudge.metrics.argus import MODES

EXACT = 1e-9


@pytest.mark.parametrize("where", ["embedded", "remote"])
def test_published_gives_the_scripts_figures(
    goldens: Path, tmp_path: Path, server: str, where: str
) -> None:
    at = ("--server", server) if where == "remote" else ()
    for draw, wanted in json.loads((goldens / "argus/expected.json").read_text()).items():
        out = tmp_path / draw
        given = ("--responses", goldens / "argus" / draw, "--model", wanted["model"])
        assert here("score", "argus", *given, "--out", out, *at).returncode in (0, 3)
        report = json.loads((out / "report.json").read_text())
        rows = {row["id"]: row for row in read_rows(out / "items.jsonl")}
        for mode, score in zip(MODES, ("cost_h", "cost_o"), strict=True):
            known = wanted[mode]
            found = report["scores"][score]
            assert found["value"] == pytest.approx(known["mean_normalized_cost"], abs=EXACT)
            assert found["n"] == known["scored_clips"] - len(known["undefined_clips"])
            for clip, figures in known["clips"].items():
                check_clip(rows[f"{clip}/{mode}"], figures, score)


def check_clip(row: dict[str, Any], figures: dict[str, Any], score: str) -> None:
    if figures.get("refused"):
        assert row["outcome"] == "unscored"
        assert row["reason"] in ("TOO_MANY_HEADINGS", "CLAIMS_MISSING", "RESPONSE_MISSING")
        return
    evidence = row["evidence"]
    assert {
        "optimal_cost": evidence["cost"],
        "max_cost": evidence["max_cost"],
        "optimal_path": [line["place"] for line in evidence["lines"]],
        "num_targets": len(evidence["lines"]),
        "num_sources": evidence["sources"],
        "max_dynamic_actions": evidence["actions"],
        "normalized_cost": row["scores"].get(score),
    } == {name: figures[name] for name in figures if name != "cost_if_ties_go_last"}
    if figures["normalized_cost"] is None:
        assert row["reason"] == "COST_UNDEFINED"


def test_corrected_states_what_it_leaves_out_and_no_cost_exceeds_one(
    goldens: Path, tmp_path: Path
) -> None:
    for draw, wanted in json.loads((goldens / "argus/expected.json").read_text()).items():
        given = ("--responses", goldens / "argus" / draw, "--model", wanted["model"])
        run = here("score", "argus", *given, "--variant", "corrected", "--out", tmp_path / draw)
        assert run.returncode in (0, 3)
        report = json.loads((tmp_path / draw / "report.json").read_text())
        coverage = report["coverage"]
        assert coverage["scored"] + sum(coverage["reasons"].values()) == coverage["items"]
        assert "TOO_MANY_HEADINGS" not in coverage["reasons"]
        for row in read_rows(tmp_path / draw / "items.jsonl"):
            assert all(0 <= cost <= 1 for cost in row["scores"].values())
