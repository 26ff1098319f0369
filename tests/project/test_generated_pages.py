"""What declarations say in README and docs/ is generated, and current."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, ROOT / "tools" / "generated_pages.py", "--check")


def test_pages_are_current() -> None:
    done = subprocess.run(COMMAND, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_table_of_metrics_is_generated() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "<!-- generated: metrics -->\n\n| metric | measures | scores | variants |" in text
