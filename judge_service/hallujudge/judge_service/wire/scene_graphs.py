"""Scene graphs of results, which are not sent: the client's items have them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from hallujudge.metrics import Item, ItemResult
from hallujudge.metrics.tri_he import TriHeEvidence, TriHeItem, checked_against_all


def without_graphs(results: Sequence[ItemResult]) -> list[ItemResult]:
    """Return the results to send, without scene graphs."""
    return [
        structs.replace(result, evidence=structs.replace(result.evidence, scene_graph=()))
        if isinstance(result.evidence, TriHeEvidence) and result.evidence.scene_graph
        else result
        for result in results
    ]


def with_graphs(items: Sequence[Item], results: Sequence[ItemResult]) -> list[ItemResult]:
    """Return the results as they were before :func:`without_graphs`.

    Args:
        items: The items that were sent.
        results: The results that were received, in order.
    """
    return [_with_graph(*pair) for pair in zip(items, results, strict=True)]


def _with_graph(item: Item, result: ItemResult) -> ItemResult:
    evidence = result.evidence
    if not isinstance(item, TriHeItem) or not isinstance(evidence, TriHeEvidence):
        return result
    if not any(map(checked_against_all, evidence.claims)):
        return result
    return structs.replace(
        result, evidence=structs.replace(evidence, scene_graph=item.reference_triplets or ())
    )
