"""Advice to install an extra, as pip takes it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hallujudge.judge_service import install_advice, missing_modules


@pytest.mark.parametrize("extra", ["server", "llm"])
def test_pip_takes_the_advice(extra: str) -> None:
    """The requirements are already there in this environment, so that nothing is downloaded."""
    assert missing_modules(extra) == ()
    requirements = install_advice(extra, image=Path("/nonexistent")).split("'")[1::2]
    run = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", *requirements],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
