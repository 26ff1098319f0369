"""Checks of what a benchmark needs, with the command that installs it.

A benchmark imports this module first. Where a package or the golden data is missing, it ends with
exit code 2 and one sentence, not with a traceback.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[1]
SETUP = "run `make setup`, then this script with .venv/bin/python"
EVERYTHING = "run `make setup EXTRAS=ci` (1.6 GB), then this script with .venv/bin/python"


def stop(sentence: str) -> NoReturn:
    """End the benchmark because a requirement is missing."""
    print(f"{Path(sys.argv[0]).name}: {sentence}", file=sys.stderr)
    raise SystemExit(2)


def packages(*names: str, get: str = SETUP) -> None:
    """End the benchmark if a package is not installed; `get` is the command that installs it."""
    missing = [name for name in names if not is_installed(name)]
    if missing:
        stop(f"not installed: {', '.join(missing)}; {get}.")


def is_installed(name: str) -> bool:
    """Return whether a package is installed, without importing it."""
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def goldens(part: str) -> Path:
    """Return the golden data's folder of a family, or end the benchmark if it is absent."""
    folder = goldens_or_none(part)
    if folder is None:
        stop(f"the golden data ({part}) is absent; set HALLUJUDGE_GOLDENS to its folder.")
    return folder


def goldens_or_none(part: str) -> Path | None:
    """Return the golden data's folder of a family, or None."""
    root = Path(os.environ.get("HALLUJUDGE_GOLDENS") or ROOT.parent / "shared" / "goldens")
    return root / part if (root / part).is_dir() else None


packages("hallujudge.sdk", "grpc", "numpy")
