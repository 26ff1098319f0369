"""Scoring of a whole tree of archives, with one table of all models and metrics."""

from .result import LeftOut, Overview, ScoredRun
from .score import score_all

__all__ = ["LeftOut", "Overview", "ScoredRun", "score_all"]
