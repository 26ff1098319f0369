"""Tri-HE on the wire: triplets, and evidence without the scene graphs of its items.

The client has sent the scene graph of each item, and a result that returned it would double the
size of every message. The server therefore removes it, and the client adds it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import structs

from hallujudge.metrics import Item, ItemResult
from hallujudge.metrics.framework.claims import (
    ClaimParts,
    ClaimVerdict,
    Sentence,
    Triplet,
    WrittenTriplet,
)
from hallujudge.metrics.tri_he import TriHeEvidence, TriHeItem, checked_against_all

from .fields import Codec, FieldShape, MalformedError


def _write_triplet(triplet: Any, message: Any) -> None:
    message.subject, message.relation, message.object = triplet
    if isinstance(triplet, WrittenTriplet):
        message.written = triplet.written


def _read_triplet(message: Any) -> Triplet:
    parts = (message.subject, message.relation, message.object)
    return WrittenTriplet(*parts, written=message.written) if message.written else Triplet(*parts)


def _write_given(claim: Any, message: Any) -> None:
    if isinstance(claim, Sentence):
        raise MalformedError("given claims must be triplets, not sentences")
    _write_triplet(claim, message)


def _write_claim(claim: Any, message: Any) -> None:
    if isinstance(claim, Sentence):
        message.sentence = claim.text
    else:
        message.triplet.SetInParent()
        _write_triplet(claim, message.triplet)


def _read_claim(message: Any) -> ClaimParts:
    kind = message.WhichOneof("claim")
    if kind is None:
        raise MalformedError("needs a triplet or a sentence", "claim")
    return Sentence(message.sentence) if kind == "sentence" else _read_triplet(message.triplet)


TYPES: Mapping[tuple[Any, str], Codec] = {
    (Triplet, "Triplet"): Codec(_write_triplet, _read_triplet),
    (ClaimParts, "Triplet"): Codec(_write_given, _read_triplet),
}
"""A triplet that was read from a file also keeps the text that it had there."""

SHAPES: Mapping[tuple[Any, str], FieldShape] = {
    (ClaimVerdict, "triplet"): FieldShape(("triplet", "sentence"), _write_claim, _read_claim)
}
"""A claim is a triplet or a sentence."""


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
