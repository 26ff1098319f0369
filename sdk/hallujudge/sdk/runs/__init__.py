"""A run's folder, its items and its report: written, held in Python, and recomputed."""

from .folder import RunFolder
from .recompute import recompute
from .report import RunItem, RunItems, RunReport

__all__ = ["RunFolder", "RunItem", "RunItems", "RunReport", "recompute"]
