"""The engine: scores items and returns results and a report, without transport or files."""

from .registry import metric_names
from .session import Engine, ScoringSession
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
