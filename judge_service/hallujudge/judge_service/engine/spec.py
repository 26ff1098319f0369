"""The specification of a scoring run, and the metric that it names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from hallujudge.metrics import IntervalSettings, Metric
from hallujudge.metrics.errors import choose_from
from hallujudge.metrics.families import broken_benchmarks, metric_named, metric_names

from ..errors import NotFoundError

GraphLayout: TypeAlias = Literal["json", "table", "auto"]


class ShippedGraph(Struct, frozen=True, kw_only=True):
    """A graph that ships with Hallujudge."""

    name: str
    """The name, such as ``coco``."""


class InlineGraph(Struct, frozen=True, kw_only=True):
    """A graph that the caller provides."""

    name: str
    """The name of the graph in signatures."""
    text: str
    """The content of the graph file."""
    layout: GraphLayout = "auto"
    """The layout of the content."""


GraphSource: TypeAlias = ShippedGraph | InlineGraph


class ScoreSpec(Struct, frozen=True, kw_only=True):
    """The specification of a scoring run. Equal specs give equal signatures."""

    metric: str
    """The metric's name."""
    variant: str = ""
    """The variant; empty for the metric's default."""
    graphs: Mapping[str, GraphSource] = {}
    """Role -> graph."""
    options: Mapping[str, str] = {}
    """The metric's options by name."""
    group_by: tuple[str, ...] = ()
    """The item fields by which results are grouped."""
    interval: IntervalSettings = msgspec.field(default_factory=IntervalSettings)
    """The settings of confidence intervals."""
    claims: int = 0
    """About how many claims the run has; 0 if unknown. It says of which part of them a judge is
    asked how likely it would write one of the choices."""


def known_metric(name: str) -> type[Metric]:
    """Return a metric.

    Raises:
        NotFoundError: No metric has this name.
    """
    found = metric_named(name)
    if found is None:
        raise NotFoundError(
            f"metric {name!r} does not exist; {choose_from(name, metric_names())}. Benchmarks of "
            "your own are added by add_benchmarks, on a server by its owner's setting 'benchmarks'"
            + "".join(f". Not usable: {why}" for why in broken_benchmarks().values()),
            reason="METRIC_UNKNOWN",
            metadata={"metric": name},
        )
    return found
