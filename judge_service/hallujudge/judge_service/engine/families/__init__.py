"""The pipelines of metric families; each module lists its metrics in ``ENTRIES``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib import import_module

from hallujudge.metrics.families import FAMILIES

from ..entry import MetricEntry

__all__ = ["entries", "entry_of"]


@cache
def entries() -> Mapping[str, MetricEntry]:
    """Return the metrics of all families by name."""
    return {entry.name: entry for family in FAMILIES for entry in _entries_of(family)}


# Each call of a server asks six times. Callers choose names, so that only the last ones are kept.
@lru_cache(64)
def entry_of(name: str) -> MetricEntry | None:
    """Return a metric. Only its family is imported, if that has the metric's name."""
    family = name.replace("-", "_")
    own = _entries_of(family) if family in FAMILIES else ()
    return next((entry for entry in own if entry.name == name), None) or entries().get(name)


def _entries_of(family: str) -> Sequence[MetricEntry]:
    made: Sequence[MetricEntry] = import_module(f".{family}", __name__).ENTRIES
    return made
