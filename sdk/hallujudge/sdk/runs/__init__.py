"""A run's folder, its items and its report: written, resumed, read and recomputed."""

from .driver import RunWatch
from .folder import RunFolder
from .manifest import Manifest
from .merge import merge_runs
from .read import StoredRun, read_run
from .recompute import recompute
from .report import RunItem, RunItems, RunReport

__all__ = [
    "Manifest",
    "RunFolder",
    "RunItem",
    "RunItems",
    "RunReport",
    "RunWatch",
    "StoredRun",
    "merge_runs",
    "read_run",
    "recompute",
]
