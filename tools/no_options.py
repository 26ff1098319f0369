"""Answers ``--help`` for a tool that takes no options, and refuses all else.

A tool imports it before other packages, which may be missing, and before it writes anything.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

_TOOL = sys.modules["__main__"]
# Not where a test or another tool imports it.
if Path(getattr(_TOOL, "__file__", None) or "").resolve().parent == Path(__file__).parent:
    argparse.ArgumentParser(
        description=_TOOL.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
