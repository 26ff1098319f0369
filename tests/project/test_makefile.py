"""What ``make`` runs: a newcomer's targets need no npm, and a tool that fails says why."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Like npm, it hides its own errors with --silent.
NPM = """#!/bin/sh
case " $* " in *" --silent "*) exit 1 ;; esac
echo "npm error code ECONNREFUSED" >&2
exit 1
"""


def make(*arguments: str, path: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": os.pathsep.join(filter(None, (path, os.environ["PATH"])))}
    return subprocess.run(
        ["make", *arguments], cwd=ROOT, capture_output=True, text=True, env=environment, check=False
    )


def commands(target: str) -> str:
    """Returns the commands that a target would run."""
    done = make("--dry-run", target)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("target", ["test", "lint", "pytest", "demo"])
def test_newcomers_need_no_npm(target: str) -> None:
    assert "npm" not in commands(target)


def test_ci_checks_the_script_of_the_page() -> None:
    assert " lint-page" in (ROOT / ".ci/run").read_text(encoding="utf-8")
    for script in ("types", "test", "check"):
        assert f" {script}\n" in commands("lint-page").replace(" run", "")


@pytest.mark.parametrize("target", ["lint-page", "page"])
def test_npm_that_fails_says_why(target: str, tmp_path: Path) -> None:
    npm = tmp_path / "npm"
    npm.write_text(NPM, encoding="utf-8")
    npm.chmod(0o755)
    done = make(target, path=str(tmp_path))
    assert done.returncode != 0
    assert "ECONNREFUSED" in done.stderr


def test_warnings_of_the_documentation_are_shown_and_counted() -> None:
    """With --quiet, mkdocs neither shows warnings nor counts them, and --strict finds none."""
    builds = [line for line in commands("docs").splitlines() if "mkdocs build" in line]
    assert len(builds) == 1
    assert "--strict" in builds[0]
    assert "--quiet" not in builds[0]
