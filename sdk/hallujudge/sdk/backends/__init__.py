"""Where scores are made: in this process, or at a server. One interface, two backends."""

from .base import Batch, BatchResult, ScoringBackend

__all__ = ["Batch", "BatchResult", "ScoringBackend"]
