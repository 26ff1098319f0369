"""The engine: scores items and returns results and a report, without transport or files."""

from .engine import Engine, ScoringSession
from .registry import metric_names
from .spec import GraphSource, InlineGraph, ScoreSpec, ShippedGraph

__all__ = [
    "Engine",
    "GraphSource",
    "InlineGraph",
    "ScoreSpec",
    "ScoringSession",
    "ShippedGraph",
    "metric_names",
]
