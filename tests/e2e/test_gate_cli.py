"""``hallujudge gate``: exit code 1 for an exceeded limit, and 2 for what can't be checked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.comparison_runs import chair_run, pope_run
from support.running import assert_refused, cli, here

from hallujudge.sdk.cli import main


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    chair_run(folder / "old", 0.2, seed=1)
    chair_run(folder / "new", 0.9, seed=2)
    pope_run(folder / "pope", 0.9)
    newer = folder / "newer"
    chair_run(newer, 0.2, seed=1)
    manifest = newer / "manifest.json"
    values = json.loads(manifest.read_text()) | {"format": 99}
    manifest.write_text(json.dumps(values))
    return folder


def test_as_continuous_integration_runs_it(runs: Path) -> None:
    limit = ("--max-regression", "chair_i=0.01", "--replicates", "300")
    failed = cli("gate", runs / "new", "--baseline", runs / "old", *limit)
    assert (failed.returncode, failed.stderr) == (1, "")
    assert "1 of 1 checks failed" in failed.stdout


def test_pytest_has_the_gate_as_a_fixture(runs: Path, tmp_path: Path) -> None:
    tests = tmp_path / "test_models.py"
    tests.write_text(
        f"def test_new(assert_hallucination):\n"
        f"    assert_hallucination({str(runs / 'new')!r}, 'chair_i', below=0.1)\n"
        f"def test_old(assert_hallucination):\n"
        f"    assert_hallucination({str(runs / 'old')!r}, 'chair_i', below=0.9)\n"
    )
    # Under another name than its entry point's, pytest would refuse it as known.
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    plugin = ("-p", "hallujudge.integrations.pytest_plugin")
    command = [sys.executable, "-m", "pytest", *plugin, str(tests)]
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert "1 failed, 1 passed" in ran.stdout, ran.stdout + ran.stderr
    assert "test_new - AssertionError: chair_i is 0." in ran.stdout


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("old", "--baseline", "new", "--max-regression", "chair_i=0"), 0),
        (("new", "--max", "chair_s=0.5"), 1),
        (("new", "--max", "chair_s=0.99", "--min", "recall=0.1"), 0),
        (("new", "--max", "chair_s=0.99", "--min", "recall=0.9"), 1),
        (("new", "--max", "chair_s=0.65", "--decide", "observed"), 1),
        (("new", "--max-unscored", "0"), 0),
    ],
)
def test_exit_codes(
    runs: Path,
    words: tuple[str, ...],
    code: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(runs)
    assert main(["gate", *words, "--replicates", "300", "-f", "json"]) == code
    assert json.loads(capsys.readouterr().out)["passed"] is (code == 0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("old",), "give --max-regression, --max, --min or --max-unscored"),
        (
            ("old", "--max-regression", "chair_i=0.1"),
            "compare with: give --baseline",
        ),
        (("none", "--max", "chair_i=1"), "none: no such folder"),
        (("newer", "--max", "chair_i=1"), "Update hallujudge"),
        (("old", "--baseline", "pope", "--max", "chair_i=1"), "the metrics are chair and pope"),
        (("old", "--max", "chair_i"), "--max 'chair_i': give a score and a number"),
        (("old", "--max", "chair_i=x"), "--max 'chair_i=x': give a score and a number"),
        (("old", "--max", "chair_i=1", "--max", "chair_i=2"), "two limits"),
        (("old", "--min", "f1=0.8"), "chair has no score 'f1'"),
        (("old", "--min", "recall=0.8", "--decide", "x"), "error: --decide is 'x'"),
        (("old", "--min", "recall=0.8", "-f", "pdf"), "--format 'pdf'"),
    ],
)
def test_errors_are_not_taken_for_regressions(
    runs: Path, words: tuple[str, ...], said: str
) -> None:
    assert_refused(here("gate", *words, cwd=runs), said)
