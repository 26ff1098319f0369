"""Reports of runs of the question-answering commands, and their analyses."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from support.running import here


def report_of(out: Path) -> dict[str, Any]:
    """Return the content of a run's report."""
    content: dict[str, Any] = json.loads((out / "report.json").read_text())
    return content


def values_of(out: Path) -> dict[str, float | None]:
    """Return a run's scores by name."""
    return {name: score["value"] for name, score in report_of(out)["scores"].items()}


def bytes_of(out: Path) -> list[bytes]:
    """Return the files that must not depend on where a run was scored."""
    return [(out / name).read_bytes() for name in ("report.json", "items.jsonl")]


def analyses_of(*arguments: str | Path) -> tuple[dict[str, Any], str]:
    """Return the analyses of finished runs by name, and what was said on standard error."""
    run = here("analyze", *arguments, "--format", "json")
    assert run.returncode == 0, run.stderr
    analyses: dict[str, Any] = json.loads(run.stdout)["analyses"]
    return analyses, run.stderr


def tables_of(*arguments: str | Path) -> tuple[dict[str, list[dict[str, Any]]], str]:
    """Return the same with the rows of each analysis alone."""
    analyses, said = analyses_of(*arguments)
    return {name: table["rows"] for name, table in analyses.items()}, said


def assert_refused(run: subprocess.CompletedProcess[str], *said: str) -> None:
    """Assert exit code 2 and one line on standard error that contains every given text."""
    assert run.returncode == 2, run.stderr
    assert run.stderr.startswith("error: "), run.stderr
    assert "Traceback" not in run.stderr
    for part in said:
        assert part in run.stderr, run.stderr
