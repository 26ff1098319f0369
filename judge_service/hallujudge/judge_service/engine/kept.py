"""Pipelines that are kept for the next run with the same spec."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from typing import NamedTuple

from .entry import Pipeline
from .registry import metric_entry
from .spec import InlineGraph, ScoreSpec

__all__ = ["KeptPipeline", "KeptPipelines"]

_MOST = 64
_MOST_CHARS = 4 << 20


class KeptPipeline(NamedTuple):
    """A pipeline, and what it says of itself, which stays the same."""

    pipeline: Pipeline
    """The pipeline."""
    settings: Mapping[str, str]
    """Its settings, sorted."""
    chars: int
    """The characters of its spec."""


class KeptPipelines:
    """The pipelines of the last specs that need no models. They keep nothing of a run.

    Opening a pipeline took a fifth of the time of a call with one caption.

    Args:
        keep_graphs: Whether pipelines with graphs of callers are kept. Their graphs stay in memory
            with them, which :class:`Resources` does not count.
    """

    def __init__(self, *, keep_graphs: bool = False) -> None:
        self._keep_graphs = keep_graphs
        self._pipelines: OrderedDict[Hashable, KeptPipeline] = OrderedDict()
        self._chars = 0

    def get(self, spec: ScoreSpec) -> KeptPipeline | None:
        """Return the pipeline of a spec; None: it is not kept."""
        found = self._pipelines.get(key := _key(spec))
        if found is None:
            return None
        self._pipelines.move_to_end(key)
        return found

    def add(self, spec: ScoreSpec, pipeline: Pipeline) -> None:
        """Keep a pipeline if it may be kept; the least recently used ones are dropped."""
        chars = sum(
            len(graph.text) for graph in spec.graphs.values() if isinstance(graph, InlineGraph)
        )
        chars += sum(map(len, spec.options.values()))
        inline = any(isinstance(graph, InlineGraph) for graph in spec.graphs.values())
        if metric_entry(spec.metric).needs_models(spec) or (inline and not self._keep_graphs):
            return
        settings = dict(sorted(pipeline.settings.items()))
        self._pipelines[_key(spec)] = KeptPipeline(pipeline, settings, chars)
        self._chars += chars
        while len(self._pipelines) > _MOST or self._chars > _MOST_CHARS:
            _, dropped = self._pipelines.popitem(last=False)
            self._chars -= dropped.chars


def _key(spec: ScoreSpec) -> Hashable:
    """Return what pipelines depend on."""
    return (
        spec.metric,
        spec.variant,
        tuple(spec.graphs.items()),
        tuple(spec.options.items()),
        spec.group_by,
        spec.interval,
    )
