"""The array job of deploy/slurm: its tasks run as plain processes with Slurm's variables."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.comparison_runs import WORDS

from hallujudge.sdk import Client, read_run

SCRIPT = Path(__file__).resolve().parents[2] / "deploy/slurm/score.sbatch"


@pytest.fixture
def archive(tmp_path: Path) -> tuple[Path, Path]:
    """Captions, of which the last line has no end, and their objects."""
    captions, objects = tmp_path / "my captions.jsonl", tmp_path / "objects.json"
    lines = [
        json.dumps({"image_id": n, "caption": f"A {WORDS[n % 8]} and a {WORDS[n % 3]}."})
        for n in range(23)
    ]
    captions.write_text("\n".join(lines))
    objects.write_text(json.dumps({str(n): [WORDS[n % 8]] for n in range(23)}))
    return captions, objects


def task(
    number: int, archive: tuple[Path, Path], out: Path, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a task of an array of four."""
    captions, objects = archive
    given = {
        "METRIC": "chair",
        "RESPONSES": str(captions),
        "REFERENCES": str(objects),
        "OUT": str(out),
        "SLURM_ARRAY_TASK_ID": str(number),
        "SLURM_ARRAY_TASK_MAX": "3",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    return subprocess.run(
        ["bash", str(SCRIPT)],
        env=os.environ | given | more,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_last_task_merges_and_the_numbers_are_those_of_one_run(
    tmp_path: Path, archive: tuple[Path, Path]
) -> None:
    out = tmp_path / "results"
    for number in (3, 0, 1):
        done = task(number, archive, out)
        assert done.returncode == 0, done.stderr
        assert "not yet" in done.stdout
    assert not (out / "run").exists()
    # As a task that is submitted again alone: its own array has another end.
    done = task(2, archive, out, SLURM_ARRAY_TASK_MAX="2", PARTS="4")
    assert done.returncode == 0, done.stderr
    with Client.embedded() as client:
        whole = client.score("chair", responses=archive[0], references=archive[1])
    merged = read_run(out / "run")
    assert merged.report.scores == whole.scores
    assert [line["id"] for line in merged.lines()] == [item.id for item in whole.items]
    assert not (out / "merging").exists()


def test_a_wrong_metric_fails_the_task(tmp_path: Path, archive: tuple[Path, Path]) -> None:
    done = task(0, archive, tmp_path / "results", METRIC="chiar")
    assert done.returncode == 2
    assert "chair" in done.stderr


def test_missing_variables_are_named(tmp_path: Path, archive: tuple[Path, Path]) -> None:
    assert "METRIC" in task(0, archive, tmp_path, METRIC="").stderr
    assert "PARTS" in task(7, archive, tmp_path / "results").stderr


def test_the_script_is_clean() -> None:
    if not (shellcheck := shutil.which("shellcheck")):
        pytest.skip("shellcheck is not installed")
    done = subprocess.run([shellcheck, str(SCRIPT)], capture_output=True, text=True, check=False)
    assert done.stdout == ""
