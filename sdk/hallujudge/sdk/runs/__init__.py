"""A run's folder, its items and its report: written, resumed, read and recomputed."""

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
