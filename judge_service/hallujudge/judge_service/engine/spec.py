"""The specification of a scoring run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from hallujudge.metrics import IntervalSettings

GraphLayout: TypeAlias = Literal["json", "table", "auto"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShippedGraph:
    """A graph that ships with Hallujudge."""

    name: str
    """The name, such as ``coco``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InlineGraph:
    """A graph that the caller provides."""

    name: str
    """The name of the graph in signatures."""
    text: str
    """The content of the graph file."""
    layout: GraphLayout = "auto"
    """The layout of the content."""


GraphSource: TypeAlias = ShippedGraph | InlineGraph


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSpec:
    """The specification of a scoring run. Equal specs give equal signatures."""

    metric: str
    """The metric's name."""
    variant: str = ""
    """The variant; empty for the metric's default."""
    graphs: Mapping[str, GraphSource] = field(default_factory=dict)
    """Role -> graph."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The metric's options by name."""
    group_by: tuple[str, ...] = ()
    """The item fields by which results are grouped."""
    interval: IntervalSettings = field(default_factory=IntervalSettings)
    """The settings of confidence intervals."""
