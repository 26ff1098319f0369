"""Extraction of claims and lookup of words, without scoring."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ..access.turns import in_thread
from ..errors import UnsupportedError
from .entry import FoundClaim
from .registry import checked_entry, metric_entry
from .resources import Resources, has_long_graph
from .spec import GraphSource, ScoreSpec

__all__ = ["extract", "normalize"]


async def extract(
    spec: ScoreSpec, texts: Sequence[str], resources: Resources
) -> list[list[FoundClaim]]:
    """Return the claims of texts, as the metric extracts them.

    Raises:
        UnsupportedError: The metric does not extract claims.
        NotFoundError: The metric or the graph is unknown.
        InvalidInputError: The variant, a graph role or an option is invalid.
    """
    entry = metric_entry(spec.metric)
    if entry.extract is None:
        raise UnsupportedError(f"metric {entry.name!r} does not extract claims; use another metric")
    checked_entry(spec)
    return await entry.extract(spec, texts, resources)


async def normalize(
    source: GraphSource, words: Sequence[str], resources: Resources
) -> tuple[str, list[tuple[str, ...]]]:
    """Return the graph's label, and the roots of each word (empty for an unknown word)."""

    def look_up() -> tuple[str, list[tuple[str, ...]]]:
        graph = resources.graph(source)
        return graph.label, [graph.roots_of(word) for word in words]

    if has_long_graph(source):
        return await in_thread(look_up)
    return await asyncio.to_thread(look_up)
