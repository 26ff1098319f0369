"""The engine: scores items and returns results and a report, without transport or files.

Names are imported when they are first used: a help page needs the registry alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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

_NAMES = {
    ".registry": "metric_names",
    ".session": "Engine ScoringSession",
    ".spec": "GraphSource InlineGraph ScoreSpec ShippedGraph",
}
"""Module -> the public names that it defines."""
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)
