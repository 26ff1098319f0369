"""Scripts of the checkout say what they do, and do nothing else, when they are asked for help."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Scripts read and write below the folder above theirs: a copy holds all that one could spoil.
COPIED = ("tools", "benchmarks", "examples", "deploy", "protos")
COPIED_TESTS = ("data", "oracles", "support")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkout")
    for name in (*COPIED, *(f"tests/{name}" for name in COPIED_TESTS)):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    return folder


def contents(folder: Path) -> dict[Path, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path: path.read_bytes() for path in files if "__pycache__" not in path.parts}


def test_help_of_python_scripts_is_their_usage_and_changes_nothing(copy: Path) -> None:
    scripts = [
        str(path.relative_to(copy))
        for folder in ("tools", "benchmarks", "benchmarks/gpu", "examples")
        for path in sorted((copy / folder).glob("*.py"))
        if 'if __name__ == "__main__"' in path.read_text(encoding="utf-8")
    ]
    assert {"tools/write_upgrade_fixtures.py", "tools/try_installation.py"} < set(scripts)
    before = contents(copy)
    done = subprocess.run(
        [sys.executable, copy / "tests/support/help_pages.py", *scripts],
        cwd=copy,
        capture_output=True,
        text=True,
        check=False,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [name for name, _, _ in answers] == scripts, done.stderr
    for name, code, said in answers:
        assert (name, code, said[:6]) == (name, 0, "usage:"), done.stderr
    assert contents(copy) == before


def test_help_of_shell_scripts_is_their_usage_and_changes_nothing(copy: Path) -> None:
    before = contents(copy)
    for script in (*(copy / "tools").glob("*.sh"), *(copy / "examples").glob("*.sh")):
        done = subprocess.run(
            ["bash", script, "--help"], cwd=copy, capture_output=True, text=True, check=False
        )
        assert (script.name, done.returncode, done.stdout[:6]) == (script.name, 0, "usage:")
    assert contents(copy) == before


def test_a_tool_without_options_refuses_one(copy: Path) -> None:
    before = contents(copy)
    done = subprocess.run(
        [sys.executable, copy / "tools/write_upgrade_fixtures.py", "--hepl"],
        cwd=copy,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "--hepl" in done.stderr
    assert contents(copy) == before
