"""VidHalluc's released scripts on all their tasks: every number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.running import here, read_rows

TASKS: dict[str, tuple[str, tuple[str, ...], int]] = {
    "bqa": ("bqa_answers", ("-R", "bqa_truth"), 3),
    "mcq": ("mcq", (), 0),
    "tsh": ("tsh", (), 0),
    "sth": ("sth_answers", ("-R", "sth_truth", "--similarities", "sth_similarities"), 3),
}


def drawn(goldens: Path, name: str) -> Path:
    return goldens / "vidhalluc" / f"drawn_1.{name}.json"


def expected(goldens: Path) -> Any:
    return json.loads((goldens / "vidhalluc" / "expected.json").read_text())["drawn_1"]


def scored(goldens: Path, out: Path, task: str, *more: str) -> Any:
    responses, others, code = TASKS[task]
    given: list[str | Path] = [p if p.startswith("-") else drawn(goldens, p) for p in others]
    files: list[str | Path] = ["-r", drawn(goldens, responses), *given]
    run = here("score", f"vidhalluc-{task}", *files, "--out", out, *more)
    assert run.returncode == (0 if "corrected" in more else code), run.stderr
    return json.loads((out / "report.json").read_text())


@pytest.mark.parametrize("task", ["bqa", "mcq", "tsh"])
def test_the_released_accuracies(goldens: Path, tmp_path: Path, task: str) -> None:
    report, wanted = scored(goldens, tmp_path, task), expected(goldens)[task]
    assert report["scores"]["accuracy"]["value"] == pytest.approx(wanted["accuracy"], abs=1e-12)
    assert report["totals"]["accuracy_right"] == wanted["correct"]
    assert report["totals"]["accuracy_groups"] == wanted["questions"]


@pytest.mark.parametrize("flags", [("--count-empty",), ("--allow-missing", "--count-empty")])
def test_flags_for_what_is_missing_change_no_released_number(
    goldens: Path, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    report = scored(goldens, tmp_path, "bqa", *flags)
    wanted = expected(goldens)["bqa"]
    assert report["scores"]["accuracy"]["value"] == pytest.approx(wanted["accuracy"], abs=1e-12)


def test_every_order_is_read_as_the_script_reads_it(goldens: Path, tmp_path: Path) -> None:
    scored(goldens, tmp_path, "tsh")
    rows = read_rows(tmp_path / "items.jsonl")
    read = {row["id"]: str(row["evidence"]["answers"][0]["answer"]) for row in rows}
    assert read == expected(goldens)["tsh"]["matched"]


def test_corrected_counts_the_questions_that_were_not_answered(
    goldens: Path, tmp_path: Path
) -> None:
    report = scored(goldens, tmp_path, "bqa", "--variant", "corrected")
    assert report["totals"]["accuracy_groups"] == expected(goldens)["bqa"]["questions_in_truth"]


def test_every_number_of_scene_changes(goldens: Path, tmp_path: Path) -> None:
    report, wanted = scored(goldens, tmp_path, "sth"), expected(goldens)["sth"]
    for name in ("mcc", "classification_score", "description_score", "overall_score"):
        assert report["scores"][name]["value"] == pytest.approx(wanted[name], abs=1e-12), name
    assert {name: report["totals"][name] for name in ("tp", "fn", "fp", "tn")} == {
        name: wanted[name] for name in ("tp", "fn", "fp", "tn")
    }
    assert report["coverage"]["items"] - report["coverage"]["scored"] == 140 - wanted["videos"]


def test_corrected_counts_the_videos_that_were_not_answered(goldens: Path, tmp_path: Path) -> None:
    report = scored(goldens, tmp_path, "sth", "--variant", "corrected")
    truth = json.loads(drawn(goldens, "sth_truth").read_text())
    assert sum(report["totals"][name] for name in ("tp", "fn", "fp", "tn")) == len(truth)
    assert any("no known similarity" in note for note in report["notes"])
