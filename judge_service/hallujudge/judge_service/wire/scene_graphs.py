"""Evidence on the wire without the scene graphs that the items brought.

The client has sent the graph of each item. A result that returned it would double the size of every
message, so that the server leaves it out and the client puts it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hallujudge.metrics import Item, ItemResult
from hallujudge.metrics.tri_he import TriHeEvidence, TriHeItem, checked_against_all

__all__ = ["with_graphs", "without_graphs"]


def without_graphs(results: Sequence[ItemResult]) -> list[ItemResult]:
    """Return the results to send, without scene graphs."""
    return [
        replace(result, evidence=replace(result.evidence, scene_graph=()))
        if isinstance(result.evidence, TriHeEvidence) and result.evidence.scene_graph
        else result
        for result in results
    ]


def with_graphs(items: Sequence[Item], results: Sequence[ItemResult]) -> list[ItemResult]:
    """Return the results as they were before :func:`without_graphs`.

    Args:
        items: What was sent.
        results: What came back, in order.
    """
    return [_with_graph(*pair) for pair in zip(items, results, strict=True)]


def _with_graph(item: Item, result: ItemResult) -> ItemResult:
    evidence = result.evidence
    if not isinstance(item, TriHeItem) or not isinstance(evidence, TriHeEvidence):
        return result
    if not any(map(checked_against_all, evidence.claims)):
        return result
    return replace(result, evidence=replace(evidence, scene_graph=item.reference_triplets or ()))
