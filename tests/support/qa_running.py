"""The question-answering commands run in this process, and what they leave."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
from pathlib import Path
from typing import Any


def here(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The command line in this process, which starts no interpreter."""

    from hallujudge.sdk.cli import main

    said, errors = io.StringIO(), io.StringIO()
    given = [str(argument) for argument in arguments]
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
        code = main(given)
    return subprocess.CompletedProcess(given, code, said.getvalue(), errors.getvalue())


def report_of(out: Path) -> dict[str, Any]:
    """The content of a run's report."""
    content: dict[str, Any] = json.loads((out / "report.json").read_text())
    return content


def values_of(out: Path) -> dict[str, float | None]:
    """A run's scores by name."""
    return {name: score["value"] for name, score in report_of(out)["scores"].items()}


def assert_refused(run: subprocess.CompletedProcess[str], *said: str) -> None:
    """One line on standard error, which says all of some things, and exit code 2."""
    assert run.returncode == 2, run.stderr
    assert run.stderr.startswith("error: "), run.stderr
    assert "Traceback" not in run.stderr
    for part in said:
        assert part in run.stderr, run.stderr
