"""The engine: scores items and returns results and a report, without transport or files.

Names are imported when they are first used: a help page needs the registry alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics.framework import names_on_use

if TYPE_CHECKING:
    from hallujudge.metrics.families import metric_names

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

_NAMES = {
    ".session": "Engine ScoringSession",
    ".spec": "GraphSource InlineGraph ScoreSpec ShippedGraph",
    "hallujudge.metrics.families": "metric_names",
}
"""Module -> the public names that it defines."""

__getattr__, __dir__ = names_on_use(__name__, _NAMES)
