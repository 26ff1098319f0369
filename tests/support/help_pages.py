"""Asks scripts for their help, each in a process of its own that has the libraries already.

    python help_pages.py SCRIPT...

Prints one JSON line a script: its name, its exit code, and what it wrote to its standard output.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import tempfile
import traceback
from pathlib import Path

import numpy  # noqa: F401 - what most scripts import

import hallujudge.sdk.cli  # noqa: F401


def ask(script: Path) -> None:
    """Print the answer of a script."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        child = os.fork()
        if child == 0:
            os.dup2(output.fileno(), 1)
            os._exit(_exit_code(script))
        _, status = os.waitpid(child, 0)
        output.seek(0)
        code = os.waitstatus_to_exitcode(status)
        print(json.dumps([str(script), code, output.read()]), flush=True)


def _exit_code(script: Path) -> int:
    sys.argv = [str(script), "--help"]
    sys.path.insert(0, str(script.parent))
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as err:
        return err.code if isinstance(err.code, int) else int(err.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    for name in sys.argv[1:]:
        ask(Path(name))
