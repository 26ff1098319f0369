"""Claims without verdicts, and words without captions."""

from __future__ import annotations

from collections.abc import Sequence

from hallujudge.synonym_graphs import Mention, compile_matcher

from ..errors import UnsupportedError
from .cpu import run_cpu
from .registry import metric_entry
from .resources import Resources
from .spec import GraphSource, ScoreSpec, ShippedGraph

__all__ = ["extract", "normalize"]


async def extract(
    spec: ScoreSpec, texts: Sequence[str], resources: Resources
) -> list[list[Mention]]:
    """Object mentions of texts, as CHAIR finds them.

    Raises:
        UnsupportedError: The metric takes no claims out of texts.
        NotFoundError: The metric or the graph is unknown.
    """
    entry = metric_entry(spec.metric)
    if entry.name != "chair":
        raise UnsupportedError(f"metric {entry.name!r} takes no claims out of texts")
    graph = resources.graph(spec.graphs.get("objects", ShippedGraph(name="coco")))
    published = (spec.variant or entry.variants[0]) == "published"
    matcher = compile_matcher(graph, reading="published" if published else "corrected")
    return await run_cpu(
        lambda: [matcher.find(text) for text in texts], chars=sum(len(text) for text in texts)
    )


def normalize(
    source: GraphSource, words: Sequence[str], resources: Resources
) -> tuple[str, list[tuple[str, ...]]]:
    """The graph's label and each word's roots: none where the graph doesn't know it."""
    graph = resources.graph(source)
    roots = [graph.root_of(word) for word in words]
    return graph.label, [() if root is None else (root,) for root in roots]
