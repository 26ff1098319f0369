"""Backends: scoring in this process or at a server, behind one interface."""

from .base import Batch, BatchResult, ScoringBackend

__all__ = ["Batch", "BatchResult", "ScoringBackend"]
