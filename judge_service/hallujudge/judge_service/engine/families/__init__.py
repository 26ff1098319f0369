"""The pipelines of metric families; each module lists its metrics in ``ENTRIES``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from hallujudge.metrics.families import FAMILIES

from ..entry import MetricEntry

__all__ = ["entries"]


@cache
def entries() -> Mapping[str, MetricEntry]:
    """Return the metrics of all families by name."""
    modules = (import_module(f".{family}", __name__) for family in FAMILIES)
    return {entry.name: entry for module in modules for entry in module.ENTRIES}
