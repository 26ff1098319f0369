"""A run's folder, its items and its report: written, resumed, read and recomputed."""

from .driver import RunWatch
from .folder import RunFolder
from .manifest import Manifest
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
    "read_run",
    "recompute",
]
