"""Verdicts on the wire without the scene graphs of their items.

A language model reads the whole scene graph, so the references of each of its verdicts are all of
it. Sent like this, a graph of thousands of triplets would come back once for each claim, in
messages that no client accepts. The client has the graph and puts it back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from hallujudge.metrics import Item, ItemResult
from hallujudge.metrics.framework.claims import ClaimVerdict, Verdict
from hallujudge.metrics.framework.triplets import Triplet
from hallujudge.metrics.tri_he.evidence import TriHeEvidence
from hallujudge.metrics.tri_he.items import TriHeItem

__all__ = ["with_graphs", "without_graphs"]

_Graph = tuple[Triplet, ...]


def without_graphs(items: Sequence[Item], results: Sequence[ItemResult]) -> list[ItemResult]:
    """Return the results to send: claims that were checked against the whole graph, without it.

    Args:
        items: The items.
        results: One for each item, in order.
    """
    return [_each(*pair, _taken_out) for pair in zip(items, results, strict=True)]


def with_graphs(items: Sequence[Item], results: Sequence[ItemResult]) -> list[ItemResult]:
    """Return the results as they were before :func:`without_graphs`.

    Args:
        items: The items that were sent.
        results: One for each item, in order.
    """
    return [_each(*pair, _put_back) for pair in zip(items, results, strict=True)]


def _each(
    item: Item, result: ItemResult, change: Callable[[ClaimVerdict, _Graph], ClaimVerdict]
) -> ItemResult:
    evidence = result.evidence
    if not isinstance(item, TriHeItem) or not isinstance(evidence, TriHeEvidence):
        return result
    graph = item.reference_triplets or ()
    claims = tuple(change(claim, graph) for claim in evidence.claims)
    return replace(result, evidence=replace(evidence, claims=claims))


def _taken_out(claim: ClaimVerdict, graph: _Graph) -> ClaimVerdict:
    # By identity: a matcher's choice that happens to be the whole graph is small enough.
    return replace(claim, references=()) if claim.references is graph else claim


def _put_back(claim: ClaimVerdict, graph: _Graph) -> ClaimVerdict:
    if claim.verdict is Verdict.UNSCORED or claim.references:
        return claim
    return replace(claim, references=graph)
