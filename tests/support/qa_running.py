"""Reports of runs of the question-answering commands."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any


def report_of(out: Path) -> dict[str, Any]:
    """Return the content of a run's report."""
    content: dict[str, Any] = json.loads((out / "report.json").read_text())
    return content


def values_of(out: Path) -> dict[str, float | None]:
    """Return a run's scores by name."""
    return {name: score["value"] for name, score in report_of(out)["scores"].items()}


def assert_refused(run: subprocess.CompletedProcess[str], *said: str) -> None:
    """Assert exit code 2 and one line on standard error that contains every given text."""
    assert run.returncode == 2, run.stderr
    assert run.stderr.startswith("error: "), run.stderr
    assert "Traceback" not in run.stderr
    for part in said:
        assert part in run.stderr, run.stderr
