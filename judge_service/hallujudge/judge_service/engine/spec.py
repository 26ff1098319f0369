"""How items are to be scored, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from hallujudge.metrics import IntervalSettings

__all__ = ["GraphLayout", "GraphSource", "InlineGraph", "ScoreSpec", "ShippedGraph"]

GraphLayout: TypeAlias = Literal["json", "table", "auto"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShippedGraph:
    """A graph that ships with Hallujudge."""

    name: str
    """Its name, such as ``coco``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InlineGraph:
    """A graph that the caller brings."""

    name: str
    """The name it goes by in signatures."""
    text: str
    """Its text."""
    layout: GraphLayout = "auto"
    """How the text is laid out."""


GraphSource: TypeAlias = ShippedGraph | InlineGraph


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSpec:
    """How items are to be scored. Equal specs give equal signatures."""

    metric: str
    """The metric's name."""
    variant: str = ""
    """The variant; empty: the metric's default."""
    graphs: Mapping[str, GraphSource] = field(default_factory=dict)
    """Role -> graph."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The metric's own settings by name."""
    group_by: tuple[str, ...] = ()
    """Item fields to report groups by."""
    interval: IntervalSettings = field(default_factory=IntervalSettings)
    """How intervals are made."""
