"""A run's folder, its items and its report: written, resumed, read and recomputed.

Names are imported when they are first used: most commands need only some of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics.framework import names_on_use

if TYPE_CHECKING:
    from .folder import RunFolder
    from .manifest import Manifest
    from .run_report import RunItem, RunItems, RunReport
    from .scoring import RunWatch
    from .stored_runs import StoredRun, read_run, recompute

__all__ = [
    "Manifest",
    "RunFolder",
    "RunItem",
    "RunItems",
    "RunReport",
    "RunWatch",
    "StoredRun",
    "read_run",
    "recompute",
]

_NAMES = {
    ".folder": "RunFolder",
    ".manifest": "Manifest",
    ".run_report": "RunItem RunItems RunReport",
    ".scoring": "RunWatch",
    ".stored_runs": "StoredRun read_run recompute",
}
"""Module -> the public names that it defines."""

__getattr__, __dir__ = names_on_use(__name__, _NAMES)
